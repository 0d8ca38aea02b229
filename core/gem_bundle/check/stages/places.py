"""The rules of places: what two nodes of one pipeline read and write, and where checkpoints lie.

Gems say where their rows come from and go to (`Source.places`, `Target.places`). What Spark does in
each case was measured; the tests that show it are in ``tests/integration/test_check_claims.py``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, cast

from gem_bundle.check.report import at_node, at_option, gem_failed
from gem_bundle.check.stages.areas import BELOW, Area, areas_of
from gem_bundle.check.stages.inference import inputs_of
from gem_bundle.schema import differ_for_certain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.gem import Source, Target
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan


class _Place(NamedTuple):
    """A place of a node: the option that names it, as the gem gives it, and what it covers."""

    node: Node
    option: str
    text: str
    area: Area


def check_places(plan: Plan) -> list[Diagnostic]:
    """What is wrong with where a pipeline reads, writes and keeps its checkpoints."""
    found: list[Diagnostic] = []
    places: dict[str, list[_Place]] = {}
    for name, gem in plan.gems.items():
        if gem.kind == "transform":
            continue
        node = plan.node(name)
        try:
            places[name] = list(_places_of(node, cast("Source | Target", gem)))
        except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
            found.append(gem_failed(plan.definition, node, "places", error))
    written = [place for node in plan.definition.of_kind("target") for place in places.get(node.id, ())]
    read = [place for node in plan.definition.of_kind("source") for place in places.get(node.id, ())]
    found += _check_shared(plan, written)
    found += _check_read_and_written(plan, read, written)
    if plan.definition.mode == "stream":
        found += _check_checkpoints(plan, [*read, *written])
        found += _check_ids(plan)
    return found


def _places_of(node: Node, gem: Source | Target) -> Iterator[_Place]:
    for option, texts in gem.places().items():
        for text in texts:
            for area in areas_of(text, wildcards=node.kind == "source"):
                yield _Place(node, option, text, area)


def _check_shared(plan: Plan, written: Iterable[_Place]) -> Iterator[Diagnostic]:
    """Two targets that write to one place."""
    writers: dict[Area, dict[str, _Place]] = defaultdict(dict)
    for place in written:
        writers[place.area].setdefault(place.node.id, place)
    reported: set[tuple[str, str]] = set()
    for places in writers.values():
        first, *others = places.values()
        for other in others:
            pair = (first.node.id, other.node.id)
            if pair not in reported:
                reported.add(pair)
                yield from _check_pair(plan, first, other)


def _check_pair(plan: Plan, first: _Place, second: _Place) -> Iterator[Diagnostic]:
    what = f"`{first.node.id}` writes to `{_shown(plan, second.text)}` too"
    shared = {_target(plan, place).semantics.shared for place in (first, second)}
    replacing = next((p.node.id for p in (second, first) if p.node.output_mode == "complete"), None)
    if shared == {"fine"}:
        return
    different = "loses_rows" not in shared and replacing is None and _different_columns(plan, first, second)
    if different:
        message = f"{what}, and one table can't take the rows of both: {different}"
        hint = "Let both have the same columns, or give each a table of its own."
        yield at_option(plan, second.node, "GB342", message, second.option, hint)
        return
    if plan.definition.mode == "batch":
        if second.node.output_mode == "complete":
            message = f"{what}, and this one, which runs after it, replaces what it wrote"
            yield at_option(plan, second.node, "GB342", message, second.option, _APART)
        return
    if "loses_rows" in shared:
        message = (
            f"{what}: the log of the files there belongs to one query, and what the other one writes is "
            "passed over without an error"
        )
    elif replacing is not None:
        message = f"{what}, and every micro-batch of `{replacing}`, which is `complete`, removes its rows"
    else:
        message = f"{what}: when both change the table at the same time, as when they create it, one fails"
        hint = "Let one target write the `union` of both, or create the table before the first run."
        yield at_option(plan, second.node, "GB343", message, second.option, hint, "warning")
        return
    yield at_option(plan, second.node, "GB342", message, second.option, _APART)


def _different_columns(plan: Plan, first: _Place, second: _Place) -> str:
    """How the columns of two targets differ for certain, so that the later one to write fails."""
    sides = (first, second)
    taken = [_target(plan, place).columns_taken(plan.definition.spark) for place in sides]
    if "any" in taken:
        return ""
    columns = [inputs_of(place.node, plan.facts)[0].columns for place in sides]
    ours, theirs = ({c.name.lower(): c for c in found or ()} for found in columns)
    if not ours or not theirs:
        return ""
    for name in [name for name in ours if name in theirs]:
        if differ_for_certain(ours[name].type, theirs[name].type):
            kinds = (
                f"`{ours[name].type}` in `{first.node.id}` and `{theirs[name].type}` in `{second.node.id}`"
            )
            return f"`{ours[name].name}` is {kinds}"
    pairs = ((ours, theirs), (theirs, ours))
    only = [next((one[name].name for name in one if name not in other), None) for one, other in pairs]
    if None in only or "new" in taken:
        return ""  # what only lacks columns is taken
    return f"only `{first.node.id}` has `{only[0]}`, and only `{second.node.id}` has `{only[1]}`"


_APART = "Let one target write the `union` of both, or give each a place of its own."


def _check_read_and_written(
    plan: Plan, read: Iterable[_Place], written: list[_Place]
) -> Iterator[Diagnostic]:
    """A source that reads what a target of the pipeline writes."""
    index = _Index(written)
    reported: set[tuple[str, str]] = set()
    for source in read:
        for target in index.read_by(source.area):
            pair = (source.node.id, target.node.id)
            if pair not in reported:
                reported.add(pair)
                check = _batch_loop if plan.definition.mode == "batch" else _stream_loop
                yield from check(plan, source, target)


class _Index:
    """Finds what is written to where someone reads; linear over a pipeline unless it has wildcards."""

    def __init__(self, written: Iterable[_Place]) -> None:
        self._all = list(written)
        self._exact: dict[tuple[str, tuple[str, ...]], list[_Place]] = defaultdict(list)
        self._below: dict[tuple[str, tuple[str, ...]], list[_Place]] | None = None
        for place in self._all:
            self._exact[place.area.root, place.area.parts].append(place)

    def read_by(self, area: Area) -> list[_Place]:
        """The places whose rows who reads this area gets."""
        if area.wild:
            return [place for place in self._all if area.reads(place.area)]
        key = (area.root, area.table_parts)
        if not area.below:
            return self._exact.get(key, [])
        if self._below is None:
            self._below = defaultdict(list)
            for place in self._all:
                for length in range(len(place.area.parts) + 1):
                    self._below[place.area.root, place.area.parts[:length]].append(place)
        return self._below.get(key, [])


def _stream_loop(plan: Plan, source: _Place, target: _Place) -> Iterator[Diagnostic]:
    where = _shown(plan, target.text)
    shared = _target(plan, target).semantics.shared
    own = source.node.id in plan.streaming_sources(target.node.id)
    if own and shared == "loses_rows":
        if target.area.parts == source.area.table_parts:
            reason = "of a folder that a query writes to, Spark reads only what that query wrote: nothing"
        else:
            reason = "each row that it writes comes back as a new one, without end"
        message = f"it writes to `{where}`, which `{source.node.id}` reads: {reason}"
        yield at_option(plan, target.node, "GB345", message, target.option, "Write to another folder.")
        return
    if own:
        reason = "each row that it writes comes back as a new one, without end unless something stops it"
        hint = "Write to another place, or filter what has been round before."
    elif source.node.mode == "batch":
        reason = "how much of it a micro-batch sees depends on when Spark looks: at the start, or each time"
        hint = "Read it in a pipeline of its own, or as a stream."
    elif shared == "fine":
        return
    else:
        reason = (
            "the two run beside each other, so that on a first run there is nothing to read from yet, "
            "and what a run reads is not all that it writes"
        )
        hint = "Read it in a pipeline of its own that runs afterwards, or use what leads to it as the input."
    message = f"it writes to `{where}`, which `{source.node.id}` reads: {reason}"
    yield at_option(plan, target.node, "GB344", message, target.option, hint, "warning")


def _batch_loop(plan: Plan, source: _Place, target: _Place) -> Iterator[Diagnostic]:
    where = _shown(plan, target.text)
    shared = _target(plan, target).semantics.shared
    own = source.node.id in plan.upstream([target.node.id])
    if target.node.output_mode == "complete":
        if shared == "loses_rows" and own:
            message = (
                f"it replaces `{where}`, which `{source.node.id}` reads: Spark empties the folder before it "
                "reads it, and the rows are lost"
            )
            yield at_option(plan, target.node, "GB345", message, target.option, "Write to another folder.")
        if own:
            return
        reason = "what is read depends on whether this target or the one that reads runs first"
    elif own:
        reason = "each run adds its rows to what the next run reads"
    else:
        reason = "what is read depends on whether this target or the one that reads runs first"
    message = f"it writes to `{where}`, which `{source.node.id}` reads: {reason}"
    hint = "Write to another place, or read it in a pipeline of its own."
    yield at_option(plan, target.node, "GB344", message, target.option, hint, "warning")


def _check_checkpoints(plan: Plan, places: Iterable[_Place]) -> Iterator[Diagnostic]:
    """A checkpoint within data that is read or written, or data within a checkpoint."""
    definition = plan.definition
    targets = {node.id for node in definition.of_kind("target")}
    (root,) = areas_of(f"{definition.checkpoints}/{definition.name}", wildcards=False)
    hint = "Let `checkpoints`, at the top of the file, be a folder that holds nothing else."
    reported: set[tuple[str, str]] = set()
    for node, option, text, area in places:
        if area.wild or (node.id, option) in reported:
            continue
        here = f"`{_shown(plan, text)}`"
        reported.add((node.id, option))
        owner = next(iter(area.parts[len(root.parts) :]), None)
        if root.holds(area) and owner in targets:
            message = f"{here} lies in the checkpoint of `{owner}`, which is Spark's alone"
            yield at_option(plan, node, "GB347", message, option, hint)
        elif area.holds(root):
            names = root.parts[len(area.parts) :]
            # Readers of files pass over such folders, and so does what cleans a table up.
            if not any(name.startswith(("_", ".")) for name in names):
                message = (
                    f"{here} holds the checkpoints too, in `{'/'.join(names) or '.'}`: who reads all its "
                    "folders takes their files for data, and what cleans a table up removes them"
                )
                harmless = node.kind == "source" and not area.below and names
                yield at_option(
                    plan, node, "GB347", message, option, hint, "warning" if harmless else "error"
                )


def _check_ids(plan: Plan) -> Iterator[Diagnostic]:
    """Two targets whose checkpoints have the same name wherever upper and lower case are the same."""
    first: dict[str, str] = {}
    for node in plan.definition.of_kind("target"):
        other = first.setdefault(node.id.lower(), node.id)
        if other != node.id:
            message = (
                f"its id differs from `{other}` in upper and lower case only, so on a file system that "
                "doesn't tell them apart (macOS, Windows) both get the same checkpoint"
            )
            yield at_node(plan, node, "GB346", message, "Rename one of the two.", "warning")


def _target(plan: Plan, place: _Place) -> Target:
    return cast("Target", plan.gems[place.node.id])


def _shown(plan: Plan, text: str) -> str:
    """A place as the user knows it: relative to the pipeline file where it lies below it."""
    text = text.removesuffix(BELOW).removeprefix("table:")
    return text.removeprefix(f"{plan.definition.folder}/")
