"""The order of the columns that Spark drops duplicates by: it makes a Scala set of their names.

Up to four names stay in their order; more are in that of a `scala.collection.immutable.HashSet` (Scala 2.13):
a tree by five bits of a hash at a time, in which names come before branches.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

_IN_ORDER = 4
_BITS = 5
_WHOLE = 32
_MASK = (1 << _WHOLE) - 1


def key_order(names: Iterable[str]) -> list[str]:
    """The names in the order of the keys that Spark makes of them.

    Args:
        names: Those that were given to `dropDuplicates`, as they are written.
    """
    known = list(dict.fromkeys(names))
    return known if len(known) <= _IN_ORDER else _in_tree([(_mixed(_hash(name)), name) for name in known], 0)


def _in_tree(hashed: Sequence[tuple[int, str]], shift: int) -> list[str]:
    if shift >= _WHOLE:
        return [name for _, name in hashed]
    branches: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for hash_, name in hashed:
        branches[hash_ >> shift & (1 << _BITS) - 1].append((hash_, name))
    ordered = [branch for _, branch in sorted(branches.items())]
    found = [name for branch in ordered if len(branch) == 1 for _, name in branch]
    return found + [name for branch in ordered if len(branch) > 1 for name in _in_tree(branch, shift + _BITS)]


def _hash(name: str) -> int:
    """Java's hash of a text, as an unsigned number of 32 bits."""
    found = 0
    encoded = name.encode("utf-16-be")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & _MASK
    return found


def _mixed(hash_: int) -> int:
    """What Scala's immutable sets make of a hash: `scala.collection.Hashing.improve`."""
    found = (hash_ + (~(hash_ << 9) & _MASK)) & _MASK
    found ^= found >> 14
    found = (found + (found << 4)) & _MASK
    return found ^ found >> 10
