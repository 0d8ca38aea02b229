"""What a gem declares of itself, in words, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.describe.words import either
from gem_bundle.facts import REJECTED

if TYPE_CHECKING:
    from gem_bundle.describe.facts import GemDescription


def semantics_in_words(gem: GemDescription) -> list[tuple[str, str]]:
    """What a gem declares, as pairs of what and how, for people."""
    facts = gem.semantics
    if gem.kind == "transform":
        words = [("Inputs", _input_count(facts["least_inputs"], facts["most_inputs"]))]
        if facts["can_reject"]:
            words.append(_rejected_rows())
        return words
    ways = either([way for way, can in (("stream", facts["streaming"]), ("batch", facts["batch"])) if can])
    words = [("Mode", ways)]
    if facts["streaming"]:
        words.append(("Triggers", ", ".join(_trigger(trigger) for trigger in facts["triggers"])))
    if gem.kind == "source":
        words.append(("Replayable", _with("yes" if facts["replayable"] else "no", facts["condition"])))
        if not facts["backlog"]:
            words.append(("Backlog", "no: rows come while the query runs, and never end"))
        if facts["only_new"]:
            words.append(("First run", "begins with the rows that come after its start"))
        if facts["lag"]:
            words.append(("Lag", ", ".join(facts["lag"])))
        if facts["inline"]:
            words.append(("In tests", "read as it is, since its rows are its options"))
        if facts["can_reject"]:
            words.append(_rejected_rows())
        return words
    if facts["streaming"]:
        words.append(("Output modes", ", ".join(facts["output_modes"])))
        words.append(("Delivery", _with(_DELIVERY[facts["delivery"]], facts["condition"])))
        restart = "continues from its checkpoint" if facts["restartable"] else "starts anew"
        words.append(("Restart", restart))
        if facts["shared"] in _SHARED:
            words.append(("Two writers", _SHARED[facts["shared"]]))
    if facts["can_reject"]:
        words.append(_rejected_rows())
    return words


def _rejected_rows() -> tuple[str, str]:
    from gem_bundle.rejected import COLUMNS

    columns = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
    return "Rejected rows", f"`{REJECTED}`: {columns}"


_SHARED = {
    "conflicts": "one query fails when both change the place itself, as when they create it",
    "loses_rows": "no: the rows of one of the two queries are lost",
}
_DELIVERY = {
    "exactly_once": "exactly once",
    "at_least_once": "at least once",
    "none": "no promise, it is for looking at",
}


def _with(answer: str, condition: str) -> str:
    return f"{answer}: {condition}" if condition else answer


def _trigger(kind: str) -> str:
    return "none (as fast as possible)" if kind == "default" else kind


def _input_count(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"
