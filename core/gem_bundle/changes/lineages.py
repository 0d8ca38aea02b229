"""What a transform makes of what, found out once for all that ask."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gem_bundle.facts import Facts
    from gem_bundle.gem import Transform
    from gem_bundle.lineage import Lineage

    _Known = list[tuple[str, Sequence[Facts], Lineage | None]]

_KNOWN: WeakKeyDictionary[Transform, _Known] = WeakKeyDictionary()


def lineage_of(transform: Transform, inputs: Sequence[Facts], output: str = "") -> Lineage | None:
    """What a transform makes of what, in one of its outputs; None where its gem doesn't tell, or fails.

    Args:
        transform: The transform.
        inputs: What is known of its inputs.
        output: The name of the output; empty for the ordinary one.
    """
    known = _KNOWN.setdefault(transform, [])
    for name, over, found in known:
        if name == output and len(over) == len(inputs) and all(map(_is_it, over, inputs)):
            return found
    try:
        found = transform.lineage_output(output, *inputs) if output else transform.lineage(*inputs)
    except Exception:  # noqa: BLE001 (a gem's bug must not take the comparison down)
        found = None
    known.append((output, inputs, found))
    return found


def _is_it(one: Facts, other: Facts) -> bool:
    return one is other
