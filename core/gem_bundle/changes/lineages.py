"""What gems tell of what their transforms make of what, whatever a gem does."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gem_bundle.facts import Facts
    from gem_bundle.gem import Transform
    from gem_bundle.lineage import Lineage, Step


class _Known(NamedTuple):
    transform: ref[Transform]
    found: list[tuple[str, Sequence[Facts], Lineage | None]]


# By identity, while they are there: a gem of somebody else's may have no hash, as data classes have none.
_KNOWN: dict[int, _Known] = {}


def lineage_of(transform: Transform, inputs: Sequence[Facts], output: str = "") -> Lineage | None:
    """What a transform makes of what, in one of its outputs; None where its gem doesn't tell, or fails.

    Args:
        transform: The transform.
        inputs: What is known of its inputs.
        output: The name of the output; empty for the ordinary one.
    """
    key = id(transform)
    if key not in _KNOWN:
        _KNOWN[key] = _Known(ref(transform, lambda _: _KNOWN.pop(key, None)), [])
    known = _KNOWN[key].found
    for name, over, found in known:
        if name == output and len(over) == len(inputs) and all(map(is_, over, inputs)):
            return found
    try:
        found = transform.lineage_output(output, *inputs) if output else transform.lineage(*inputs)
    except Exception:  # noqa: BLE001 (a gem's bug must not take the comparison down)
        found = None
    known.append((output, inputs, found))
    return found


def steps_of(transform: Transform, inputs: Sequence[Facts]) -> Sequence[Step]:
    """The steps of which a transform is made; none where its gem doesn't tell, or fails.

    Args:
        transform: The transform.
        inputs: What is known of its inputs.
    """
    try:
        return transform.steps(*inputs) or ()
    except Exception:  # noqa: BLE001 (a gem's bug must not take the comparison down)
        return ()
