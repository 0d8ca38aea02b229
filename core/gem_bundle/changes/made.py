"""What is made of columns, as made of what those are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.lineage import UNCHANGED, Equality, Made, uses_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def as_made_before(known: Mapping[str, Made], made: Made) -> Made:
    """Something made of columns, as made of what those are made of.

    Args:
        known: How the columns are made.
        made: What is made of them.
    """
    if made.uses is None:
        return made
    found = [known.get(use.partition(":")[2], Made("?", None)) for use in made.uses]
    # Of a union each branch has the condition.
    if made.rule in UNCHANGED and len(found) == 1:
        return found[0]
    equals = (equal_before(known, equal) for equal in made.equals)
    rule = (
        "of several"
        if made.rule == "="
        else " ".join([made.rule, *sorted({f.nameless for f in found} - {""})])
    )
    return Made(
        rule,
        uses_of(found),
        equals=tuple(equal for equal in equals if equal is not None),
        whole=made.whole if all(f.rule in UNCHANGED for f in found) else "",
    )


def equal_before(known: Mapping[str, Made], equal: Equality) -> Equality | None:
    """What is to be equal, by what its columns are made of; None where that isn't known.

    Args:
        known: How the columns are made.
        equal: What of them is to be equal.
    """
    one, other = (
        as_made_before(known, Made(rule or "=", side))
        for side, rule in zip(equal.sides, equal.rules, strict=True)
    )
    if one.uses is None or other.uses is None:
        return None
    return Equality((one.uses, other.uses), equal.takes_nulls, (one.nameless, other.nameless))
