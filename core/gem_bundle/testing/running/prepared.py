"""A pipeline made ready for a test: nodes replaced, and no source left that reaches outside by itself."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from gem_bundle.check.checker import check_definition
from gem_bundle.diagnostics import NOWHERE, Diagnostic, Place, in_order, listed_names, suggest
from gem_bundle.errors import PipelineError
from gem_bundle.facts import UNKNOWN_DELAY, output_key
from gem_bundle.pipeline.loader import LoadOptions, load_file
from gem_bundle.pipeline.secrets import Secret, SecretStore
from gem_bundle.schema import StructField, fields_of, type_of
from gem_bundle.testing.running.outcome import is_output
from gem_bundle.testing.running.outputs import misnamed, rejects_nothing, with_outputs

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from gem_bundle.builder import Pipeline
    from gem_bundle.facts import Column, Facts
    from gem_bundle.gem import Gem, Source
    from gem_bundle.pipeline.document import Locator, Path
    from gem_bundle.pipeline.loader import Loaded
    from gem_bundle.pipeline.model import Definition
    from gem_bundle.pipeline.plan import Plan


@dataclass(frozen=True)
class Replace:
    """What stands for a node.

    Args:
        schema: The columns of its rows, as DDL.
        gem: Another gem.
        options: The options of that gem.
        real: It stays as it is.
        place: Where that is said.
    """

    schema: str | None = None
    gem: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    real: bool = False
    place: Place = NOWHERE


@dataclass(frozen=True)
class Feed:
    """That a test gives rows to a node.

    Args:
        node: The node, or ``id.output`` for one of several outputs.
        schema: The columns of the rows, as DDL, where the test says them.
        place: Where that is said.
        always: They are there from the start, for all tests of a file: this one may do without.
    """

    node: str
    schema: str | None = None
    place: Place = NOWHERE
    always: bool = False


@dataclass(frozen=True)
class Circumstances:
    """What a test says about its pipeline, its steps left aside.

    Args:
        profile: The profile.
        parameters: Values of parameters.
        environment: Environment variables in addition to those of the process.
        secrets: Secrets by ``scope/key``. One that isn't given has its name for a value.
        spark: Spark settings that win over the pipeline's.
        replace: What stands for nodes.
        targets: The targets to run, and what nodes reject as ``id.rejected``, with the places where they are
            named; empty for all targets.
        feeds: The nodes that get rows.
        place: Where the test stands.
    """

    profile: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    replace: Mapping[str, Replace] = field(default_factory=dict)
    targets: Mapping[str, Place] = field(default_factory=dict)
    feeds: Sequence[Feed] = ()
    place: Place = NOWHERE


@dataclass(frozen=True)
class Fed:
    """A node whose rows come from the test.

    Args:
        node: Its id.
        output: The output, of a transform with several.
        fields: Its columns.
        streaming: Whether it is a stream.
        delays: The watermarks that are on its columns, where it stands for a transform.
    """

    node: str
    output: str | None
    fields: tuple[StructField, ...]
    streaming: bool
    delays: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What a test calls it."""
        return self.node if self.output is None else f"{self.node}.{self.output}"


@dataclass(frozen=True)
class Prepared:
    """What the engine runs.

    Args:
        plan: The pipeline; a transform that gets rows is a source in it.
        targets: The ids of the targets that run; ``id.rejected`` is one for what a node rejects.
        fed: The nodes whose rows come from the test, by the names that tests call them by.
        real: The sources that are read as they are.
        spark: The Spark settings of the test.
    """

    plan: Plan
    targets: tuple[str, ...]
    fed: Mapping[str, Fed]
    real: frozenset[str]
    spark: Mapping[str, str | int | float | bool]

    @property
    def definition(self) -> Definition:
        """The pipeline as it was read."""
        return self.plan.definition

    @property
    def needed(self) -> list[str]:
        """The nodes that run, in graph order."""
        return self.plan.upstream(self.targets)


def prepare(pipeline: str | os.PathLike[str] | Pipeline, said: Circumstances) -> Prepared:
    """Read and check a pipeline, and put the test's rows in the places of its sources.

    Args:
        pipeline: The pipeline file, or a pipeline in Python.
        said: What the test says about it.

    Raises:
        PipelineError: With all that is wrong with the pipeline, or else with what the test says about it.
    """
    loaded = _load(pipeline, said)
    if loaded.definition is None:
        raise PipelineError(in_order(loaded.diagnostics))
    found = _unknown_nodes(loaded, said)
    if found:
        raise PipelineError(in_order(found))
    loaded = replace(loaded, definition=_with_other_gems(loaded.definition, said.replace))
    checked = check_definition(loaded)
    if checked.plan is None:
        raise PipelineError(_about_secrets(found, loaded.definition, said) for found in checked.diagnostics)
    return _fed_by_the_test(_with_outputs(checked.plan, said), said)


def _load(pipeline: str | os.PathLike[str] | Pipeline, said: Circumstances) -> Loaded:
    options = LoadOptions(
        parameters=said.parameters,
        profile=said.profile,
        environment={**os.environ, **said.environment},
        secrets=_GivenSecrets(said.secrets),
    )
    if isinstance(pipeline, str | os.PathLike):
        return load_file(pipeline, options)
    return pipeline._load(options)


class _GivenSecrets(SecretStore):
    """The secrets of a test: those it gives, and for all others their names."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__({})
        self._given = given

    def find(self, scope: str, key: str) -> tuple[str | None, list[str]]:
        """The secret's stand-in."""
        return self._given.get(f"{scope}/{key}", f"{scope}/{key}"), []


def _about_secrets(found: Diagnostic, definition: Definition | None, said: Circumstances) -> Diagnostic:
    """A problem with an option, saying where it is one of a secret's stand-in."""
    node = definition.nodes.get(found.node or "") if definition else None
    missing = sorted(definition.secrets - said.secrets.keys()) if definition else []
    if found.code != "GB205" or node is None or not missing or not _holds_secret(node.options):
        return found
    listed = listed_names(missing)
    hint = f"{found.hint} The test gives no value for {listed}: say one with `secrets: {{{missing[0]}: …}}`."
    return replace(found, hint=hint.strip())


def _holds_secret(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_secret, value.values()))
    return any(map(_holds_secret, value)) if isinstance(value, list) else isinstance(value, Secret)


def _unknown_nodes(loaded: Loaded, said: Circumstances) -> list[Diagnostic]:
    """What names a node that the pipeline doesn't have, or that can't be used so."""
    definition = cast("Definition", loaded.definition)
    nodes = definition.nodes
    targets = [node.id for node in definition.of_kind("target")]
    others = [name for name in nodes if name not in targets]
    found: list[Diagnostic] = []

    def report(message: str, place: Place, hint: str) -> None:
        found.append(Diagnostic("GB702", "error", message, place=place, hint=hint))

    for name, place in said.targets.items():
        if is_output(name):
            wrong = misnamed(name, loaded)
            if wrong is not None:
                report(wrong.message, place, wrong.hint)
        elif name not in targets and name not in loaded.broken:
            what = "no target: it is a " + nodes[name].kind if name in nodes else "no target of the pipeline"
            report(f"`{name}` is {what}", place, suggest(name, targets, what="targets"))
    for feed in said.feeds:
        name = feed.node.partition(".")[0]
        if name in targets:
            report(f"the target `{name}` can't be given rows", feed.place, "Give them to what it reads.")
        elif name not in nodes and name not in loaded.broken:
            hint = suggest(name, others, what="sources and transforms")
            report(f"the pipeline has no node `{name}` to give rows to", feed.place, hint)
    for whole, entry in said.replace.items():
        name, _, output = whole.partition(".")
        if (name not in nodes and name not in loaded.broken) or (output and entry.schema is None):
            hint = suggest(whole, nodes, what="nodes")
            report(f"the pipeline has no node `{whole}` to replace", entry.place, hint)
        elif entry.real and name in nodes and nodes[name].kind != "source":
            message = f"`{name}` is a {nodes[name].kind}, and only sources are replaced by themselves"
            report(message, entry.place, "Remove it: transforms run as they are, and targets never do.")
        elif entry.schema is not None and name in targets:
            report(f"the target `{name}` can't be given rows", entry.place, "Give them to what it reads.")
    return found


def _with_other_gems(definition: Definition, replaced: Mapping[str, Replace]) -> Definition:
    """The pipeline with the gems that the test puts into it."""
    nodes = dict(definition.nodes)
    places: dict[Path, Place] = {}
    for name, entry in replaced.items():
        if entry.gem is not None and name in nodes:
            nodes[name] = replace(nodes[name], gem=entry.gem, options=dict(entry.options))
            places[nodes[name].path] = entry.place
    if not places:
        return definition
    locator = _ReplacedLocator(definition.locator, places)
    return replace(definition, nodes=nodes, locator=locator)


class _ReplacedLocator:
    """Finds what a test has replaced in the test, and all else in the pipeline."""

    def __init__(self, inner: Locator, places: Mapping[Path, Place]) -> None:
        self._inner = inner
        self._places = places
        self.source = getattr(inner, "source", "")

    def place(self, path: Sequence[str | int], *, key: bool = False) -> Place:
        """See `Locator.place`."""
        return self._places.get(tuple(path[:2])) or self._inner.place(path, key=key)

    def text(self, path: Sequence[str | int]) -> str | None:
        """See `Locator.text`."""
        return None if tuple(path[:2]) in self._places else self._inner.text(path)


def _with_outputs(plan: Plan, said: Circumstances) -> Plan:
    """The plan with a target for what each node rejects of which the test expects rows."""
    named = [name for name in said.targets if is_output(name)]
    wrong = {name: found for name in named if (found := rejects_nothing(name, plan)) is not None}
    if wrong:
        raise PipelineError(
            Diagnostic("GB702", "error", found.message, place=said.targets[name], hint=found.hint)
            for name, found in wrong.items()
        )
    return with_outputs(plan, named)


def _fed_by_the_test(plan: Plan, said: Circumstances) -> Prepared:
    targets = tuple(said.targets) or tuple(node.id for node in plan.definition.of_kind("target"))
    names = dict.fromkeys(feed.node for feed in said.feeds)
    names |= dict.fromkeys(name for name, entry in said.replace.items() if entry.schema is not None)
    cut = {name.partition(".")[0] for name in names} & {n.id for n in plan.definition.of_kind("transform")}
    shortened = _cut(plan, cut)
    needed = shortened.upstream(targets)
    real = {
        name
        for name in needed
        if plan.node(name).kind == "source"
        and name not in names
        and _stays(plan.gems[name], said.replace.get(name))
    }
    found: list[Diagnostic] = []
    fed: dict[str, Fed] = {}
    for name in _outputs(shortened, needed, cut, names):
        if name.partition(".")[0] in real:
            continue
        made = _fed(plan, name, said)
        if isinstance(made, Diagnostic):
            found.append(made)
        else:
            fed[name] = made
    for feed in said.feeds:
        node = feed.node.partition(".")[0]
        if feed.always and node not in needed:
            continue
        if node not in needed:
            message = f"the rows of `{feed.node}` reach no target of this test"
            listed = listed_names(targets)
            hint = f"It runs {listed}; add a target that needs them, or remove them."
            found.append(Diagnostic("GB702", "error", message, node, place=feed.place, hint=hint))
        elif feed.node not in fed and not any(f.node == node for f in found):
            hint = suggest(feed.node, fed, what="nodes that take rows")
            message = f"`{feed.node}` is no output that anything reads"
            found.append(Diagnostic("GB702", "error", message, node, place=feed.place, hint=hint))
    if found:
        raise PipelineError(in_order(found))
    return Prepared(shortened, targets, fed, frozenset(real), said.spark)


def _stays(gem: Gem, entry: Replace | None) -> bool:
    """Whether a source is read through its gem, since the test says so, or reading it touches nothing."""
    return cast("Source", gem).semantics.inline if entry is None else entry.real or entry.gem is not None


def _cut(plan: Plan, names: Iterable[str]) -> Plan:
    """The plan with transforms as sources: what lies before them isn't needed any more."""
    nodes = dict(plan.definition.nodes)
    for name in names:
        mode: Literal["stream", "batch"] = "stream" if _streams(plan, name) else "batch"
        nodes[name] = replace(nodes[name], kind="source", inputs=(), mode=mode)
    return replace(plan, definition=replace(plan.definition, nodes=nodes))


def _streams(plan: Plan, name: str) -> bool:
    """Whether the rows that flow out of a node are a stream."""
    known = plan.facts[name].streaming
    return bool(plan.streaming_sources(name)) if known is None else known


def _outputs(plan: Plan, needed: Iterable[str], cut: set[str], given: Container[str]) -> Iterable[str]:
    """What needs rows: sources by their ids, and transforms with several outputs by each that is read.

    What a source rejects has rows where they are given, and else none.
    """
    readers = [edge for name in needed for edge in plan.node(name).inputs]
    for name in needed:
        if plan.node(name).kind != "source":
            continue
        outputs = dict.fromkeys(edge.output for edge in readers if edge.node == name)
        if name in cut and outputs:
            yield from (output_key(name, output) for output in outputs)
        else:
            yield name
            yield from (key for output in outputs if output and (key := output_key(name, output)) in given)


def _fed(plan: Plan, name: str, said: Circumstances) -> Fed | Diagnostic:
    """The stand-in for a node, or why its columns can't be told."""
    node, _, output = name.partition(".")
    feeds = [feed for feed in said.feeds if feed.node == name]
    entry = said.replace.get(name) or said.replace.get(node)
    place = next((feed.place for feed in feeds), entry.place if entry else said.place)
    facts = plan.facts.get(name, plan.facts[node])
    schema = next((feed.schema for feed in feeds if feed.schema is not None), entry.schema if entry else None)
    is_transform = plan.node(node).kind == "transform"
    streaming = _streams(plan, node)
    delays = _delays(facts) if is_transform else {}
    if schema is not None:
        fields = fields_of(schema)
        if fields is None:
            message = f"the schema of `{name}` has a type that rows can't be given in: {schema}"
            return Diagnostic("GB705", "error", message, node, place=place, hint="Correct its types.")
        names = {found.name.lower() for found in fields}
        delays = {column: delay for column, delay in delays.items() if column.lower() in names}
        return Fed(node, output or None, fields, streaming, delays)
    known = _fields(facts.columns)
    if known is None:
        message = f"the columns of `{name}` aren't known, so no rows can be given in its place"
        hint = f'Say them: `replace: {{{name}: {{schema: "id bigint, at timestamp"}}}}`.'
        return Diagnostic("GB705", "error", message, node, place=place, hint=hint)
    return Fed(node, output or None, known, streaming, delays)


def _fields(columns: Sequence[Column] | None) -> tuple[StructField, ...] | None:
    if columns is None:
        return None
    kinds = [None if column.type is None else type_of(column.type) for column in columns]
    known = tuple(
        StructField(column.name, kind)
        for column, kind in zip(columns, kinds, strict=True)
        if kind is not None
    )
    return known if len(known) == len(columns) else None


def _delays(facts: Facts) -> dict[str, str]:
    """The watermarks of a node's timestamps. What a window carries can't be put on it from outside."""
    return {
        column.name: column.delay
        for column in facts.columns or ()
        if column.delay is not None and column.delay != UNKNOWN_DELAY and column.type == "timestamp"
    }
