"""Sources: added, removed, under another id, of another place, gem or schema, with other options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle.changes.comparison import Told
from gem_bundle.changes.emptied import gets_through
from gem_bundle.changes.needed import ALL
from gem_bundle.changes.reach import Reach, Taint, reach_from
from gem_bundle.changes.rules.options import differences
from gem_bundle.changes.rules.repeats import none_passes_twice
from gem_bundle.changes.rules.transforms import tell
from gem_bundle.changes.ways import has_moved, is_there
from gem_bundle.changes.wording import RULE_ONLY, told
from gem_bundle.diagnostics import listed_names
from gem_bundle.gem import Source
from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator, LimitOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.model import Change
    from gem_bundle.changes.record import NodeRecord
    from gem_bundle.changes.rules.options import Difference
    from gem_bundle.operators import Operator

_ANY = Taint(rows=True, columns={ALL})


def compare_sources(both: Comparison) -> Iterator[Told]:
    """The changes of sources, with how far each reaches."""
    renamed: dict[str, NodeRecord] = {}
    gone = [node for node in both.removed if node.kind == "source"]
    for node in both.added:
        if node.kind == "source":
            former = both.called_before(node)
            if former is not None:
                renamed[former.id] = node
            yield Told(_added(both, node, former)) if node.mode != "batch" else _table(both, node, former)
    for node in gone:
        if node.id not in renamed:
            yield Told(_removed(both, node)) if node.mode != "batch" else _no_table(both, node)
    for old, new in both.pairs:
        if new.kind == "source":
            yield from _compare(both, old, new)


def _table(both: Comparison, node: NodeRecord, former: NodeRecord | None) -> Told:
    """What a new table makes of it, in the place of another one for instance."""
    if former is not None and former.options == node.options:
        what = f"source `{former.id}` is called `{node.id}` now, and is the table that it was"
        return Told(
            both.change("continues", "GB412", what, node.id, before=former.id, after=node.id), Reach()
        )
    what = f"source `{node.id}` is new, and read as it is"
    reach = _from_table(both.after, node.id, set(both.now.values()))
    if reach.states:
        return Told(tell(both, reach, "GB410", what, node.id, after=node.gem), reach)
    return Told(both.change("from_now_on", "GB410", what, node.id, after=node.gem))


def _no_table(both: Comparison, node: NodeRecord) -> Told:
    what = f"source `{node.id}` {both.no_more(node)}"
    reach = Reach().join(_from_table(both.before, node.id, set(both.now)), both.now)
    if reach.states:
        return Told(tell(both, reach, "GB411", what, node.id, before=node.gem), reach)
    return Told(both.change("from_now_on", "GB411", what, node.id, before=node.gem))


def _from_table(flow: Flow, name: str, known: set[str]) -> Reach:
    """How far a table reaches by the nodes that both versions have; the others are told by themselves."""
    readers = [n.id for n in flow.side.nodes.values() if any(edge.node == name for edge in n.inputs)]
    return reach_from(flow, name, _ANY) if known & set(readers) else Reach()


def _added(both: Comparison, node: NodeRecord, former: NodeRecord | None) -> Change:
    gem = both.new.gems.get(node.id)
    if former is not None and reads_only_new(gem):
        return both.change(
            "skipped",
            "GB412",
            f"source `{former.id}` is called `{node.id}` now, and the checkpoint knows nothing of that: it "
            f"begins {begin_of(gem)}, and what has come since the last run is never read",
            node.id,
            hint=f"Write `was: {former.id}` at `{node.id}` if it is the same source.",
            before=former.id,
            after=node.id,
        )
    if former is not None:
        what = (
            f"source `{former.id}` is called `{node.id}` now, and the checkpoint knows nothing of that: "
            "all that was read is read again"
        )
        hint = f"Write `was: {former.id}` at `{node.id}` if it is the same source."
        return _read_again(both, node, "GB412", what, hint, before=former.id, after=node.id)
    begins = begin_of(gem)
    late = _drop_late_rows(both, node.id)
    if reads_only_new(gem):
        return both.change(
            "skipped",
            "GB410",
            f"source `{node.id}` is new and begins {begins}: what is there already is never read",
            node.id,
            hint=f"Let it begin at what is there already, or accept it: `--accept GB410:{node.id}`.",
            after=node.gem,
        )
    if both.was_read_earlier(node):
        what = (
            f"source `{node.id}` was read by an earlier version, and the checkpoint has forgotten how far: "
            "all that was read is read again"
        )
        hint = (
            "Begin behind what was read, by the source's own options, under another id. "
            f"Or accept it: `--accept GB410:{node.id}`."
        )
        return _read_again(both, node, "GB410", what, hint, after=node.gem)
    if late:
        named = listed_names(sorted(late))
        return both.change(
            "skipped",
            "GB410",
            f"source `{node.id}` is new: rows older than the checkpoint's watermark are late, and {named} "
            "drops them",
            node.id,
            hint=f"{both.elsewhere} Or accept it: `--accept GB410:{node.id}`.",
            after=node.gem,
        )
    return both.change(
        "continues",
        "GB410",
        f"source `{node.id}` is new: it is read {begins}",
        node.id,
        after=node.gem,
    )


def _read_again(
    both: Comparison,
    node: NodeRecord,
    code: str,
    what: str,
    hint: str,
    *,
    readers: Iterable[str] | None = None,
    **details: Any,
) -> Change:
    """Rows of a source that come once more: where none of them passes twice, they change nothing.

    Args:
        both: What is compared.
        node: The source.
        code: The code of the change.
        what: What makes them come again.
        hint: What to do.
        readers: The readers by which they come; by default all of the source.
        details: The rest of the change, as `Comparison.change` has it.
    """
    come = set(node.readers if readers is None else readers)
    alone = _is_alone(both, node) and come == set(node.readers)
    dropped = not gets_through(both.after, both.plan, come) or none_passes_twice(
        both.after, node.id, alone=alone
    )
    message = what + ", and changes no result" * dropped
    made = both.change("continues" if dropped else "again", code, message, node.id, hint=hint, **details)
    return replace(made, anew=("again", what)) if dropped else made


def _is_alone(both: Comparison, source: NodeRecord) -> bool:
    """Whether the query reads no other stream than a source."""
    return not any(
        node.kind == "source" and node.mode != "batch" and node.id != source.id
        for node in both.new.version.nodes
    )


def _drop_late_rows(both: Comparison, source: str) -> set[str]:
    """Those of the nodes behind a source that drop rows of it that are older than the watermark, or may."""
    if not any(operator.kind == "watermark" for operator in both.new.operators):
        return set()
    behind = both.after.states_behind(source)
    return {
        operator.node
        for operator in both.new.stateful
        if operator.node in behind and _drops_late_rows(both, operator, source)
    }


def _drops_late_rows(both: Comparison, operator: Operator, source: str) -> bool:
    """Whether an operator tells by event time which rows of a source are late, as far as it is known."""
    if isinstance(operator, AggregateOperator):
        # A table that is written anew keeps all groups, so that none is ever late.
        return operator.event_time is not False and not both.is_rewritten
    if isinstance(operator, DeduplicateOperator):
        return both.after.drops_late_rows(operator)
    if isinstance(operator, JoinOperator):
        return any(
            edge.node in {source, *both.new.behind(source)}
            and both.after.reads_event_time(operator.node, position)
            for position, edge in enumerate(both.new.nodes[operator.node].inputs)
        )
    return not isinstance(operator, LimitOperator)


def begin_of(gem: object) -> str:
    """From where a source is read in a first run, as words behind `it is read`."""
    if not isinstance(gem, Source):
        return "from where its options say"
    return gem.begins()


def reads_only_new(gem: object) -> bool:
    """Whether a source passes over what is there already when no checkpoint knows it."""
    return isinstance(gem, Source) and bool(gem.semantics.only_new)


def _removed(both: Comparison, node: NodeRecord) -> Change:
    return both.change(
        "skipped",
        "GB411",
        f"source `{node.id}` {both.no_more(node)}: what waits there since the last run is never read",
        node.id,
        hint="Run the old version once more with `--available-now`, and then this one with "
        f"`--accept GB411:{node.id}`. Or keep the source.",
        before=node.gem,
    )


def _compare(both: Comparison, old: NodeRecord, new: NodeRecord) -> Iterator[Told]:
    streaming = new.mode != "batch"
    if old.gem != new.gem and streaming:
        made = both.change(
            "refused",
            "GB413",
            f"source `{new.id}` was a `{old.gem}` and is a `{new.gem}`: Spark can't read its offsets",
            new.id,
            key="gem",
            hint=f"Give it another id: then it is a new source, and `{old.id}` one that is no more.",
            before=old.gem,
            after=new.gem,
        )
        yield Told(made)
        return
    if (old.mode == "batch") != (new.mode == "batch"):
        yield _other_mode(both, old, new)
        return
    moved = has_moved(both.old.version, old, both.new.version, new)
    for found in differences(old, new, both.new.gems.get(new.id), stateful=False):
        said = moved and found.known and found.option in new.places
        if said and streaming and (found.change.by_id or found.change.effect in {"refused", "skipped"}):
            yield Told(_moved(both, found, new))
        elif said and not streaming and all(map(is_there, new.places[found.option])):
            yield Told(_came_along(both, found, new))
        else:
            yield _option(both, found, old, new, streaming=streaming)
    if streaming and set(old.readers) != set(new.readers):
        lost, come = set(old.readers) - set(new.readers), set(new.readers) - set(old.readers)
        if lost or come:
            yield Told(_readers(both, new, lost, come))


def _option(
    both: Comparison, found: Difference, old: NodeRecord, new: NodeRecord, *, streaming: bool
) -> Told:
    effect = found.change.effect if streaming else "from_now_on"
    what = said = f"source `{new.id}`: {found.what}"
    code = "GB414" if found.place else "GB415"
    if found.change.why and streaming:
        what += f"; {found.change.why}"
    if not found.known:
        what += RULE_ONLY.format(new.gem)
    hint = found.change.hint
    if effect == "refused" and found.change.idle and both.was_idle(new):
        effect = "skipped"
        what = f"{said}; the last micro-batch had nothing of it, so that Spark doesn't notice: "
        what += found.change.idle
    come = set(new.places.get(found.option, ())).difference(*old.places.values())
    if streaming and effect in {"continues", "from_now_on"} and both.was_read_earlier(new, come):
        effect = "again"
        what = (
            f"{said}; an earlier version has read {listed_names(sorted(come))}, and the checkpoint has "
            "forgotten how far: it comes again"
        )
        hint = f"Leave it out, or accept it: `--accept {code}:{new.id}`."
    if effect == "from_now_on":
        # What the order of columns means to those behind it they say themselves.
        reach = both.reach(old, new, Taint() if found.change.only_order else _taint(both, old, new))
        details = {"option": found.option, "before": found.before, "after": found.after}
        return Told(tell(both, reach, code, what, new.id, **details), reach)
    made = both.change(
        effect,
        code,
        what,
        new.id,
        option=found.option,
        hint=hint,
        before=found.before,
        after=found.after,
    )
    return Told(made)


def _taint(both: Comparison, old: NodeRecord, new: NodeRecord) -> Taint:
    """What is different about a source's rows: the columns that are, else anything."""
    before, after = both.old.facts.get(old.id), both.new.facts.get(new.id)
    if before is None or after is None or before.columns is None or after.columns is None:
        return _ANY
    one = {column.name.lower(): column.type for column in before.columns}
    other = {column.name.lower(): column.type for column in after.columns}
    changed = {name for name in {*one, *other} if one.get(name, "") != other.get(name, "")}
    return Taint(rows=False, columns=changed) if changed else _ANY


def _moved(both: Comparison, found: Difference, new: NodeRecord) -> Change:
    what = (
        f"source `{new.id}`: the project's folder was {told(both.old.version.folder)} and is "
        f"{told(both.new.version.folder)}, and the checkpoint"
    )
    details = {"option": found.option, "before": found.before, "after": found.after}
    if found.change.by_id:
        message = f"{what} knows what it reads by an id, which it has taken along"
        return both.change("continues", "GB416", message, new.id, **details)
    what += " keeps the whole paths of the files that were read: "
    hint = (
        f"Move the project back. Or let `{found.option}` name the old place in full, if the files, or a "
        f"link to them, are there: {told(found.before)}."
    )
    if found.change.effect == "skipped":
        # Without a folder that all of them lie in, Spark takes those at the new place for others.
        return _read_again(both, new, "GB416", what + "all that came along is read again", hint, **details)
    what += "Spark fails in the first micro-batch"
    return both.change("refused", "GB416", what, new.id, hint=hint, **details)


def _came_along(both: Comparison, found: Difference, new: NodeRecord) -> Change:
    """A table has no offsets: each micro-batch reads all of it, wherever that is."""
    return both.change(
        "continues",
        "GB416",
        f"source `{new.id}`: the project's folder was {told(both.old.version.folder)} and is "
        f"{told(both.new.version.folder)}, and what `{found.option}` names has come along",
        new.id,
        option=found.option,
        before=found.before,
        after=found.after,
    )


def _other_mode(both: Comparison, old: NodeRecord, new: NodeRecord) -> Told:
    what = f"source `{new.id}` was read as a {_mode(old)} and is read as a {_mode(new)}"
    if new.mode == "batch":
        # Nothing but a join reads it so, which gives rows for new ones of the stream alone.
        made = both.of_state(
            "mixed",
            "GB417",
            f"{what}: each micro-batch sees all of its rows, and rows of the other stream that wait for one "
            "get none any more",
            new.id,
            difference=what,
            key="mode",
            before=old.mode,
            after=new.mode,
        )
    elif reads_only_new(gem := both.new.gems.get(new.id)):
        made = both.change(
            "skipped",
            "GB417",
            f"{what}, which begins {begin_of(gem)}: what is there already is never read",
            new.id,
            key="mode",
            hint=f"Keep `mode: batch`. {both.elsewhere}",
            before=old.mode,
            after=new.mode,
        )
    else:
        made = both.change(
            "mixed",
            "GB417",
            f"{what}: what earlier results were made with is read once more",
            new.id,
            key="mode",
            hint=f"Keep `mode: batch`. {both.elsewhere}",
            before=old.mode,
            after=new.mode,
        )
    return Told(made)


def _mode(node: NodeRecord) -> str:
    return "static relation" if node.mode == "batch" else "stream"


def _readers(both: Comparison, node: NodeRecord, lost: set[str], come: set[str]) -> Change:
    names = listed_names(sorted(lost | come))
    hint = "Keep the inputs of the node where the paths meet under their names."
    if come and reads_only_new(gem := both.new.gems.get(node.id)):
        return both.change(
            "skipped",
            "GB418",
            f"source `{node.id}` reaches the target on another path than before, with a reader of its own "
            f"({names}), which begins {begin_of(gem)}: what has come since the last run is never read there",
            node.id,
            hint=hint,
            before=sorted(lost),
            after=sorted(come),
        )
    if come:
        what = (
            f"source `{node.id}` reaches the target on another path than before, with a reader of its own "
            f"({names}): what was read is read again there"
        )
        details = {"before": sorted(lost), "after": sorted(come)}
        return _read_again(both, node, "GB418", what, hint, readers=come, **details)
    return both.change(
        "skipped",
        "GB418",
        f"source `{node.id}` reaches the target on fewer paths than before: what waits for {names} is never "
        "read there",
        node.id,
        before=sorted(lost),
    )
