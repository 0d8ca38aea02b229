"""Two versions of a pipeline side by side: which node was which, and how a difference is told."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.changes.flow import Flow
from gem_bundle.changes.model import Change, at_section, settled
from gem_bundle.changes.reach import Reach, Taint, local_taint, reach_from
from gem_bundle.changes.ways import against_fresh, can_be_computed_anew
from gem_bundle.check.report import option_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.model import Verdict
    from gem_bundle.changes.record import NodeRecord, VersionRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.operators import Option
    from gem_bundle.pipeline.plan import Plan


class Told(NamedTuple):
    """A change, and how far it reaches where that is known."""

    change: Change
    reach: Reach | None = None


class Comparison:
    """What the rules compare.

    Args:
        old: What ran last.
        new: What is going to run.
        plan: The pipeline as it is now, for places in its file.
        checkpoint: What Spark left of what ran; None where that isn't known.
        earlier: What ran on the same checkpoint before that.
    """

    def __init__(
        self,
        old: Side,
        new: Side,
        plan: Plan,
        checkpoint: SparkCheckpoint | None = None,
        earlier: Sequence[VersionRecord] = (),
    ) -> None:
        self._checkpoint = checkpoint
        self._earlier = earlier
        self.old = old
        self.new = new
        self.plan = plan
        self.after = Flow(new)
        self.before = Flow(old, self.after, new.nodes[new.target].output_mode)

    @cached_property
    def pairs(self) -> list[tuple[NodeRecord, NodeRecord]]:
        """The nodes that both have, as they were and as they are."""
        return [(old, node) for node in self.new.version.nodes if (old := self._former(node)) is not None]

    @cached_property
    def added(self) -> list[NodeRecord]:
        """The nodes that are new."""
        known = {node.id for _, node in self.pairs}
        return [node for node in self.new.version.nodes if node.id not in known]

    @cached_property
    def removed(self) -> list[NodeRecord]:
        """The nodes that are no more."""
        known = {node.id for node, _ in self.pairs}
        return [node for node in self.old.version.nodes if node.id not in known]

    def no_more(self, node: NodeRecord) -> str:
        """What has become of a node that no longer leads to the target, as the end of a sentence.

        Args:
            node: The node as it was.
        """
        nodes = self.plan.definition.nodes.values()
        if any(other.kind == node.kind and other.identity == node.identity for other in nodes):
            return f"is no longer before target `{self.new.target}`"
        return "is no more"

    @cached_property
    def _renamed(self) -> dict[str, NodeRecord]:
        """Transforms that have another id, and others options at most: to Spark their ids are nothing."""
        known = {node.identity for node in self.new.version.nodes}
        waiting = [
            node for node in self.old.version.nodes if node.kind == "transform" and node.identity not in known
        ]
        found: dict[str, NodeRecord] = {}
        for node in self.new.version.nodes:
            if node.kind != "transform" or node.identity in self.old.by_identity:
                continue
            same = [
                old
                for old in waiting
                if old.gem == node.gem and old.options == node.options and len(old.inputs) == len(node.inputs)
            ]
            if same:
                waiting.remove(same[0])
                found[node.id] = same[0]
        found |= self._renamed_and_edited(waiting, found)
        return found

    def _renamed_and_edited(
        self, waiting: Sequence[NodeRecord], known: Mapping[str, NodeRecord]
    ) -> dict[str, NodeRecord]:
        """Transforms with another id and other options that read what one of their gem has read, only one.

        Args:
            waiting: The transforms that are no more.
            known: Those that have another id and are the same, by it.
        """
        found: dict[str, NodeRecord] = {}
        now = {old.id: name for name, old in known.items()}
        nodes = self.new.version.nodes
        now |= {old.id: node.id for node in nodes if (old := self.old.by_identity.get(node.identity))}
        for node in nodes:
            is_known = node.id in known or node.was or node.identity in self.old.by_identity
            if node.kind != "transform" or is_known:
                continue
            read = [(edge.node, edge.output) for edge in node.inputs]
            same = [
                old
                for old in waiting
                if old.gem == node.gem
                and old not in found.values()
                and [(now.get(edge.node), edge.output) for edge in old.inputs] == read
            ]
            if len(same) == 1:
                found[node.id] = same[0]
                now[same[0].id] = node.id
        return found

    def _former(self, node: NodeRecord) -> NodeRecord | None:
        if node.id in self._renamed:
            return self._renamed[node.id]
        found = self.old.by_identity.get(node.identity)
        if found is None:
            found = next((self.old.nodes[name] for name in node.was if name in self.old.nodes), None)
        return found if found is not None and found.kind == node.kind else None

    def called_before(self, source: NodeRecord) -> NodeRecord | None:
        """The source that is no more and read the same place as a new one, by the same gem.

        Args:
            source: The new one.
        """
        for old in self.removed:
            if old.kind == "source" and (old.gem, old.mode, old.places) == (
                source.gem,
                source.mode,
                source.places,
            ):
                return old
        return None

    def was_read_earlier(self, source: NodeRecord, places: Iterable[str] | None = None) -> bool:
        """Whether a version before the last one that ran has read what is a source's now.

        Of a source that wasn't there in between the checkpoint has forgotten how far it was read.

        Args:
            source: The source.
            places: Those of its places that count; by default all, and its id.
        """
        wanted = {place for some in source.places.values() for place in some}
        if places is not None:
            wanted &= set(places)
        return any(
            node.kind == "source"
            and node.gem == source.gem
            and node.mode == source.mode
            and (
                (places is None and node.identity == source.identity)
                or any(wanted.intersection(some) for some in node.places.values())
            )
            for version in self._earlier
            for node in version.nodes
        )

    def was_idle(self, source: NodeRecord) -> bool:
        """Whether it is known that the last micro-batch had no rows of a source.

        Args:
            source: The source as it is now.
        """
        offsets = () if self._checkpoint is None else self._checkpoint.offsets[-2:]
        if len(offsets) < 2:
            return False
        before, last = (found.sources for found in offsets)
        return bool(source.readers) and all(
            name in last and before.get(name) == last[name] for name in source.readers
        )

    def frozen(self, key: str) -> str | None:
        """The value of a setting that the checkpoint keeps; None where nothing is known of it.

        Args:
            key: The setting.
        """
        kept = {} if self._checkpoint is None else self._checkpoint.frozen
        return kept.get(key) or self.old.version.settings.get(key)

    @property
    def names_sources(self) -> bool | None:
        """Whether the checkpoint has named sources; None where nothing is known of it."""
        return None if self._checkpoint is None else self._checkpoint.named

    @cached_property
    def now(self) -> dict[str, str]:
        """The ids that the old version's nodes have now, by the ids that they had."""
        return {old.id: node.id for old, node in self.pairs}

    def reach(
        self,
        old: NodeRecord,
        new: NodeRecord,
        taint: Taint,
        *,
        own_state: bool = False,
        outputs: dict[str, Taint] | None = None,
    ) -> Reach:
        """How far a difference reaches, in the rows that came before and in those that come now.

        Args:
            old: The node as it was.
            new: The node as it is.
            taint: What is different about the rows that it gives.
            own_state: Its own state is different too.
            outputs: What is different about its named outputs, where that is told by no lineage.
        """
        outputs = self.outputs(old, new) | (outputs or {})
        before = reach_from(self.before, old.id, taint, outputs, own_state=own_state)
        return reach_from(self.after, new.id, taint, outputs, own_state=own_state).join(before, self.now)

    def outputs(self, old: NodeRecord, new: NodeRecord) -> dict[str, Taint]:
        """What is different about the named outputs of a node that has changed, where that is known."""
        names = {*self.before.outputs(old.id), *self.after.outputs(new.id)} - {""}
        made = {name: (self.before.lineage(old.id, name), self.after.lineage(new.id, name)) for name in names}
        return {name: local_taint(one, other) for name, (one, other) in made.items() if one and other}

    def read_before(self, node: NodeRecord) -> list[tuple[str, str]]:
        """What a node read, by the ids of now, without what was taken out between, which is told by itself.

        Args:
            node: The node as it was.
        """
        found = _read(self.old, node, {other.id for other in self.removed})
        return [(self.now.get(name, f"-{name}"), output) for name, output in found]

    def read_now(self, node: NodeRecord) -> list[tuple[str, str]]:
        """What a node reads, without what was put between.

        Args:
            node: The node as it is.
        """
        return _read(self.new, node, {other.id for other in self.added})

    @property
    def fresh(self) -> str:
        """The command that begins anew, as a hint names it."""
        definition = self.plan.definition
        if definition.within is not None:
            return f"`--fresh {self.new.target}`"  # each platform starts a bundle by a command of its own
        return f"`gem-bundle run {self._file}--fresh {self.new.target}`"

    @property
    def _file(self) -> str:
        """The pipeline file as a command names it, and a blank; empty for one written in Python."""
        definition = self.plan.definition
        profile = f"--profile {shlex.quote(definition.profile)} " if definition.profile else ""
        return f"{shlex.quote(definition.file)} {profile}" if definition.file else ""

    @cached_property
    def no_fresh(self) -> str:
        """Why that command doesn't take the target, and what to do instead; empty where it does."""
        before = self.old.version if self.old is not self.new else None
        found = next(against_fresh(self.plan, self.new, before, self._checkpoint), None)
        return "" if found is None else f"{self.fresh} doesn't take it: {found.why}. {found.hint}"

    @property
    def begin_anew(self) -> str:
        """The hint for whoever needs new state."""
        return self.no_fresh or (
            f"Begin anew with {self.fresh}, which goes on where the old checkpoint ended, with new state."
        )

    @property
    def for_new_values(self) -> str:
        """The hint for whoever wants another value of a setting to count that the checkpoint keeps."""
        if self.no_fresh:
            return f"The new value counts for a new checkpoint only. {self.no_fresh}"
        return f"For the new value to count, begin anew with {self.fresh}."

    @property
    def elsewhere(self) -> str:
        """The hint for whom neither new state nor old state has all that is needed."""
        return (
            "For all rows to count, give the target another id and another place: for that its sources are "
            "read from where their options say."
        )

    def or_begin_anew(self, first: str) -> str:
        """The hint for whoever needs new state, or does something else.

        Args:
            first: What else there is to do, as the beginning of a sentence.
        """
        return f"{first}. {self.no_fresh}" if self.no_fresh else f"{first}, or begin anew with {self.fresh}."

    def compute_anew(self, changed: set[str]) -> str:
        """The hint for whoever wants earlier results by the new rule; empty where that is refused.

        Args:
            changed: The columns of the target that are made in another way than before; `*` is any.
        """
        if any(node.kind == "source" for node in (*self.added, *self.removed)):
            return ""  # what the target has of another source has its time in another way
        taken = can_be_computed_anew(self.plan, self.new, changed, self._checkpoint)
        command = f"gem-bundle backfill {self._file}--target {self.new.target} --from TIME --to TIME"
        return f"`{command}` computes earlier results by it." * taken

    @property
    def is_rewritten(self) -> bool:
        """Whether the target is written anew with each micro-batch, so that no earlier result stays."""
        return self.new.nodes[self.new.target].output_mode == "complete"

    def change(
        self,
        verdict: Verdict,
        code: str,
        message: str,
        node: str = "",
        *,
        key: str = "",
        option: Option | None = None,
        hint: str = "",
        before: Any = None,
        after: Any = None,
        what: str = "",
        setting: str = "",
        kind: str = "",
    ) -> Change:
        """A change at a key or at an option of a node, where the node has it, else at the node.

        One of a node that is no more is at the section of its kind, and one of no node at a setting of
        Spark, where the file has them.

        Args:
            verdict: What becomes of rows.
            code: The code of this kind of change.
            message: What is different and what that does.
            node: The id of the node, now or, where it is no more, then.
            key: The key of the node.
            option: The option of the node.
            hint: What to do about it.
            before: What it was.
            after: What it is.
            what: The half of the message that says what is different.
            setting: The setting of Spark.
            kind: The kind of a node that no version has.
        """
        definition = self.plan.definition
        found = definition.nodes.get(node)
        if found is None and node in self.old.nodes:
            kind = self.old.nodes[node].kind
        path: tuple[str | int, ...]
        if kind:
            path, place = at_section(definition, kind)
            return Change(verdict, code, message, node, path, place, hint, before, after, what=what)
        if found is None:
            path = ("spark", setting) if setting in definition.spark else ()
        elif option is not None:
            path = option_path(found, option, self.plan.gems.get(node))
        else:
            path = (*found.path, key) if key else found.path
        place = definition.locator.place(path, key=found is not None and path == found.path)
        return Change(verdict, code, message, node, path, place, hint, before, after, what=what)

    def of_state(
        self, verdict: Verdict, code: str, message: str, node: str, *, difference: str, **details: Any
    ) -> Change:
        """A change that is about nothing but state, so that new state settles it.

        Args:
            verdict: What becomes of rows.
            code: The code of this kind of change.
            message: What is different and what that does.
            node: The id of the node.
            difference: The half of the message that says what is different.
            details: Where it stands, and what it was and is, as `change` takes them; by default the hint
                says how to begin anew.
        """
        details["hint"] = details.get("hint") or self.begin_anew
        return replace(self.change(verdict, code, message, node, **details), anew=settled(difference))


def origin(side: Side, name: str, passed: set[str]) -> str | None:
    """The node that was there before, behind those that were put between or taken out.

    Returns:
        None where there is none, or several.
    """
    while name in passed:
        node = side.nodes.get(name)
        if node is None or node.kind == "source":
            return None
        found = {before for edge in node.inputs if (before := origin(side, edge.node, passed)) is not None}
        if len(found) != 1:
            return None
        (name,) = found
    return name


def _read(side: Side, node: NodeRecord, passed: set[str]) -> list[tuple[str, str]]:
    found = []
    for edge in node.inputs:
        name = origin(side, edge.node, passed)
        if name is not None:  # a source that is new, or gone, is told by itself
            found.append((name, edge.output if name == edge.node else ""))
    return found
