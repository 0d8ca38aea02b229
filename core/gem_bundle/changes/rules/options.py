"""What another value of an option means: what the gem says, and where it says nothing, the rule."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gem_bundle.changes.model import VERDICTS
from gem_bundle.changes.withheld import filled, marker_of, shown
from gem_bundle.changes.wording import told, told_both
from gem_bundle.errors import describe_error
from gem_bundle.options import metadata
from gem_bundle.semantics import OptionChange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.changes.record import NodeRecord
    from gem_bundle.gem import Gem


@dataclass(frozen=True)
class Difference:
    """One option that has another value.

    Args:
        option: Its name.
        before: The value that it had, defaults filled in.
        after: The value that it has.
        change: What that does, as the gem says.
        known: The gem has said it; False where the rule stands in.
        place: It says where a source reads or a target writes.
        former: The option that said so before, where that is another one; empty where it is the same.
    """

    option: str
    before: Any
    after: Any
    change: OptionChange
    known: bool
    place: bool = False
    former: str = ""

    @property
    def what(self) -> str:
        """What is different, in a sentence."""
        if self.former:
            return f"`{self.former}` was {told(self.before)}, and now `{self.option}` is {told(self.after)}"
        return f"`{self.option}` {told_both(self.before, self.after)}"


def differences(old: NodeRecord, new: NodeRecord, gem: Gem | None, *, stateful: bool) -> Iterator[Difference]:
    """The options of a node whose values differ; one that names a place in the stead of another is one edit.

    Args:
        old: The node as it was.
        new: The node as it is.
        gem: Its gem, with the new options.
        stateful: Whether the node keeps state.
    """
    found = list(_differences(old, new, gem, stateful=stateful))
    lost = [one for one in found if one.place and one.after is None]
    come = [one for one in found if one.place and one.before is None]
    if len(lost) != 1 or len(come) != 1:
        yield from found
        return
    for one in found:
        if one is come[0]:
            yield _exchanged(lost[0], one)
        elif one is not lost[0]:
            yield one


def _exchanged(lost: Difference, come: Difference) -> Difference:
    """The edit by which one option says the place that another one did; the worse of the two counts."""
    worse = max(lost, come, key=lambda one: VERDICTS.index(one.change.effect))
    return replace(
        come,
        before=lost.before,
        change=worse.change,
        known=lost.known and come.known,
        former=lost.option,
    )


def _differences(
    old: NodeRecord, new: NodeRecord, gem: Gem | None, *, stateful: bool
) -> Iterator[Difference]:
    for name in dict.fromkeys([*new.options, *old.options]):
        before, after = old.options.get(name), new.options.get(name)
        places = old.places.get(name), new.places.get(name)
        unkept = marker_of(before) is not None and before == after and places[0] != places[1]
        if not unkept and before == after and _are_in_order(before, after):
            continue
        given = _as_a_place(*places, filled(after)) if unkept else None
        change, known = meaning_of(gem, name, given or filled(before), stateful=stateful)
        if unkept:
            before, after = (", ".join(texts or ()) for texts in places)
        place = name in old.places or name in new.places or _says_a_place(gem, name)
        yield Difference(name, shown(before), shown(after), change, known, place)


def _says_a_place(gem: Gem | None, option: str) -> bool:
    """Whether an option says where a source reads or a target writes, whatever is known of its value."""
    info = None if gem is None else type(gem.options).model_fields.get(option)
    return info is not None and bool(metadata(info).get("place"))


def _as_a_place(before: Sequence[str] | None, after: Sequence[str] | None, value: Any) -> str | None:
    """The former value of an option whose text isn't kept, where it is nothing but its place, which is."""
    if before is None or after is None or len(before) != 1 or len(after) != 1:
        return None
    return before[0] if after[0] == value or after[0].startswith("/") else None


def other_code(old: NodeRecord, new: NodeRecord) -> Iterator[str]:
    """The options of a node that name the same function as before, whose code is another one.

    Code that wasn't found on one side may be what it was: a note tells of it.

    Args:
        old: The node as it was.
        new: The node as it is.
    """
    for option, digest in new.functions.items():
        former = old.functions.get(option)
        if former and digest and digest != former and old.options.get(option) == new.options.get(option):
            yield option


def _are_in_order(before: Any, after: Any) -> bool:
    """Whether equal values are so in their types and order: that of a mapping may be one of columns."""
    if type(before) is type(after) and not isinstance(before, dict | list):
        return True
    return json.dumps(before) == json.dumps(after)


def meaning_of(gem: Gem | None, option: str, before: Any, *, stateful: bool) -> tuple[OptionChange, bool]:
    """What another value of an option does, and whether the gem knows.

    Args:
        gem: The gem with the new options; None when it can't be made.
        option: The option.
        before: The value that it had, as JSON has it.
        stateful: Whether the node keeps state.
    """
    rule = OptionChange("mixed" if stateful else "from_now_on")
    if gem is None or option not in type(gem.options).model_fields:
        return rule, False
    try:
        said = gem.change(option, before)
    except Exception as error:  # noqa: BLE001 (a gem's bug must not take the comparison down)
        return OptionChange(rule.effect, f"the gem fails in `change`: {describe_error(error)}"), False
    if said is not None:
        return said, True
    options = type(gem.options)
    declared = metadata(options.model_fields[option]).get("change") or options.default_change
    return (rule, False) if declared is None else (OptionChange(declared), True)


def without_a_word(gem: Gem) -> list[str]:
    """The options of which neither `Field` nor `Gem.change` says what another value does.

    For those the gem's `default_change` stands in, and without one the rule.

    Args:
        gem: The gem, with some options.
    """
    values = gem.options.model_dump(mode="json")
    return [
        name
        for name, info in type(gem.options).model_fields.items()
        if not metadata(info).get("change") and not any(_answers(gem, name, v) for v in (values[name], None))
    ]


def _answers(gem: Gem, option: str, before: Any) -> bool:
    """Whether `Gem.change` has code for an option: where it fails, it has."""
    try:
        return gem.change(option, before) is not None
    except Exception:  # noqa: BLE001 (of a value that no option can have)
        return True
