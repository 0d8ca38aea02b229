"""What rows go by besides the pipeline: settings, frozen or not, and versions."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from gem_bundle.changes.settings import DECIDING, PLANNING, TAKING
from gem_bundle.changes.wording import told, told_both
from gem_bundle.changes.zone import TIME_ZONE
from gem_bundle.contexts import SOURCE_NAMING
from gem_bundle.expressions.names import VALUES
from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator, LimitOperator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change
    from gem_bundle.operators import Operator

_LATER = (4, 2)
_NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
_TAKEN = {
    "spark.sql.files.ignoreCorruptFiles": (
        "files that can't be read are passed over from now on, and never read again",
        "a file that can't be read ends the query; what was passed over is never read",
    ),
    "spark.sql.files.ignoreMissingFiles": (
        "files that are gone when they are to be read are passed over from now on, and never read again",
        "a file that is gone when it is to be read ends the query; what was passed over is never read",
    ),
    "spark.sql.streaming.fileStreamSink.ignoreMetadata": (
        "of a folder that a stream writes, files are read from now on that its log doesn't name",
        "of a folder that a stream writes, only those files are read from now on that its log names",
    ),
    _NO_DATA: (
        "results come from now on when their time is over, also where no rows come any more",
        "results whose time is over come from now on with the rows that come next, and not before",
    ),
}
"""What becomes of rows where a setting is on, and where it is off."""
_CASE = "spark.sql.caseSensitive"
_QUOTED = re.compile("'[^']*'")
_WORD = re.compile(r"\w+")
_PAIRS = frozenset({"inner", "left_semi"})  # joins of which each row comes with a row that is read


def compare_settings(both: Comparison) -> Iterator[Change]:
    """The changes of settings and versions."""
    yield from _settings(both)
    yield from _deciding(both)
    yield from _versions(both)


def _settings(both: Comparison) -> Iterator[Change]:
    old, new = both.old.version.settings, both.new.version.settings
    for key in sorted({*old, *new}):
        if old.get(key) == new.get(key):
            continue
        before, after = old.get(key), new.get(key)
        what = f"the setting `{key}` {told_both(before, after)}"
        node = both.new.target
        kept = both.frozen(key)
        if key == SOURCE_NAMING:
            named = _is_on(before) if both.names_sources is None else both.names_sources
            if named != _is_on(after):
                yield both.change(
                    "refused",
                    "GB440",
                    f"{what}: a checkpoint has named sources from its first run on or never",
                    hint="Put the setting back, or begin a new checkpoint.",
                    setting=key,
                    before=before,
                    after=after,
                )
        elif after is None or kept != after:
            value = "the value" if kept is None or kept == before else told(kept)
            yield both.change(
                "continues",
                "GB440",
                f"{what}; the checkpoint of `{node}` keeps {value} of its first run, so it has no effect",
                hint=both.for_new_values,
                setting=key,
                before=before,
                after=after,
            )


def _is_on(value: str | None) -> bool:
    return value is None or value.lower() == "true"


def _deciding(both: Comparison) -> Iterator[Change]:
    """The settings by which the same expressions give other values; no checkpoint keeps them."""
    old, new = both.old.version.deciding, both.new.version.deciding
    if old is None or new is None:
        return
    stateful = both.old.stateful or both.new.stateful
    for key in sorted({*old, *new, TIME_ZONE}):
        if (key in PLANNING and not stateful) or (key == _NO_DATA and not _waits_for_time(both)):
            continue
        found = _zones(both, old, new) if key == TIME_ZONE else _values(key, old, new)
        if found is None:
            continue
        (before, one), (after, other), put_back = found
        if key in TAKING:
            yield both.change(
                "from_now_on",
                "GB448",
                f"the setting `{key}` was {one} and is {other}: "
                f"{_TAKEN[key][(after or TAKING[key]).lower() != 'true']}",
                setting=key,
                before=before or None,
                after=after or None,
            )
            continue
        does = (
            "Spark may ask conditions before other state"
            if key in PLANNING
            else "expressions may give other values"
        )
        what = f"the setting `{key}` was {one} and is {other}, by which {does}"
        if stateful:
            name = _taken_for_a_value(both) if key == _CASE else None
            follows = (
                "state that was made by the old one gets into new results"
                if name is None
                else f"`{name}` isn't written as the column is, and is a value that Spark knows by that name "
                "where letters count, so that state gets another shape, and Spark refuses to go on"
            )
            yield both.of_state(
                "mixed" if name is None else "refused",
                "GB448",
                f"{what}: {follows}",
                "",
                difference=what,
                hint=both.or_begin_anew(put_back),
                setting=key,
                before=before or None,
                after=after or None,
            )
        else:
            yield both.change(
                "from_now_on",
                "GB448",
                f"{what}: rows from now on go by the new one",
                setting=key,
                before=before or None,
                after=after or None,
            )


def _taken_for_a_value(both: Comparison) -> str | None:
    """What a transform calls a column in other letters, and Spark has a value of that name (`user`)."""
    for node in both.new.nodes.values():
        facts = [both.new.facts.get(edge.key) for edge in node.inputs]
        columns = {column.name for known in facts if known is not None for column in known.columns or ()}
        values = {column.lower() for column in columns} & VALUES
        if node.kind != "transform" or not values:
            continue
        words: list[str] = _WORD.findall(_QUOTED.sub("", json.dumps(node.options)))
        for word in words:
            if word.lower() in values and word not in columns:
                return word
    return None


def _waits_for_time(both: Comparison) -> bool:
    """Whether results may come when their time is over, in a micro-batch without rows."""
    marked = any(operator.kind == "watermark" for operator in both.new.operators)
    return any(_waits(both, operator, marked=marked) for operator in both.new.stateful)


def _waits(both: Comparison, operator: Operator, *, marked: bool) -> bool:
    if isinstance(operator, AggregateOperator):
        appended = both.new.nodes[both.new.target].output_mode == "append"
        return marked and appended and operator.event_time is not False
    if isinstance(operator, JoinOperator):
        return marked and operator.how not in _PAIRS
    return not isinstance(operator, DeduplicateOperator | LimitOperator)


_Value = tuple[str, str]
"""What a setting is, empty where that isn't known or Spark's default, and how that is told."""


def _values(key: str, old: Mapping[str, str], new: Mapping[str, str]) -> tuple[_Value, _Value, str] | None:
    """What a setting was and is, and the beginning of what to do; None where it is the same."""
    before, after = (found.get(key, (DECIDING | PLANNING | TAKING).get(key, "")) for found in (old, new))
    if before == after:
        return None
    one, other = (told(value) if value else "Spark's default" for value in (before, after))
    return (before, one), (after, other), "Put it back"


def _zones(
    both: Comparison, old: Mapping[str, str], new: Mapping[str, str]
) -> tuple[_Value, _Value, str] | None:
    """The same of the time zone, which is the machine's where no setting gives it."""
    said = [found.get(TIME_ZONE, "") for found in (old, new)]
    zones = [one or side.version.zone for one, side in zip(said, (both.old, both.new), strict=True)]
    if zones[0] == zones[1] or (said[0] == said[1] and "" in zones):
        return None
    one, other = (
        told(value) if value else f"the machine's own {told(zone)}" if zone else "the machine's own"
        for value, zone in zip(said, zones, strict=True)
    )
    is_known = bool(zones[0]) and not said[0]
    put_back = f"Write `{TIME_ZONE}: {zones[0]}` under `spark`" if is_known else "Put it back"
    return (zones[0], one), (zones[1], other), put_back


def _versions(both: Comparison) -> Iterator[Change]:
    old, new = both.old.version, both.new.version
    if old.spark != new.spark and old.spark and new.spark:
        before, after = _number(old.spark), _number(new.spark)
        if before >= _LATER > after:
            yield both.change(
                "refused",
                "GB441",
                f"Spark was {old.spark} and is {new.spark}, which can't read the checkpoint of the later one",
                hint=f"Run with Spark {old.spark}.",
                before=old.spark,
                after=new.spark,
            )
        else:
            tried = "it reads what the other has left"
            if before > after:
                tried = "that an earlier one reads all that a later one has left isn't known; else it fails"
            yield both.change(
                "continues",
                "GB441",
                f"Spark was {old.spark} and is {new.spark}; {tried}",
                before=old.spark,
                after=new.spark,
            )
    told_of: set[str] = set()
    for before_node, node in both.pairs:
        one = (before_node.distribution, before_node.distribution_version)
        other = (node.distribution, node.distribution_version)
        if one == other or not all((*one, *other)) or other[0] in told_of or before_node.gem != node.gem:
            continue
        told_of.add(other[0])
        yield both.change(
            "continues",
            "GB442",
            f"the gem `{node.gem}` was of {' '.join(one)} and is of {' '.join(other)}; what its options "
            "mean is judged by the one that is installed now",
            node.id,
            key="gem",
            before=" ".join(one),
            after=" ".join(other),
        )


def _number(version: str) -> tuple[int, int]:
    parts = version.split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (ValueError, IndexError):
        return 0, 0
