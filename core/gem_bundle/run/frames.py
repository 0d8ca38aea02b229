"""DataFrames in graph order: one for each node and path that needs a reader of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Union, cast

from gem_bundle.contexts import ReadContext, StreamReadContext, analysed, is_over_connect
from gem_bundle.errors import GemError
from gem_bundle.facts import REJECTED
from gem_bundle.pipeline.groups import UNDIVIDED, Output, remembering
from gem_bundle.pipeline.plan import paths_behind, paths_into, reader_name
from gem_bundle.rejected import (
    REJECTED_HERE,
    RejectedIn,
    Rejecting,
    Rejects,
    accepted_rows,
    event_time_column,
    reason,
    rejected_rows,
    with_event_time,
    with_file,
    without_file,
)
from gem_bundle.run.held import counted_apart, counted_before, counted_behind, counted_undivided

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.gem import Source, Transform
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Path, Plan
    from gem_bundle.run.held import Observe

Built = Union["DataFrame", Mapping[str | None, "DataFrame"]]
Read = Callable[["Node", str], Built]
Settle = Callable[[str, "DataFrame"], "DataFrame"]
Keep = Callable[["DataFrame"], "DataFrame"]
_MARK = "spark.watermarkDelayMs"


class NodeFailure(Exception):  # noqa: N818 (it carries a failure from a node to the diagnostic)
    """What a gem raised while its part of the plan was built.

    Args:
        node: The id of the node.
        error: What was raised.
    """

    def __init__(self, node: str, error: Exception) -> None:
        super().__init__(node, error)
        self.node = node
        self.error = error


@contextmanager
def _failing_as(node: str) -> Iterator[None]:
    """Let what is raised be a failure of a node, where it isn't already that of one before it."""
    try:
        yield
    except NodeFailure:
        raise
    except Exception as error:
        raise NodeFailure(node, error) from error


def harmless(plan: Plan) -> Plan:
    """The plan with transforms that change nothing outside.

    Args:
        plan: The checked pipeline.
    """
    gems = dict(plan.gems)
    for node in plan.definition.of_kind("transform"):
        gem = gems.get(node.id)
        if gem is not None and gem.kind == "transform":
            gems[node.id] = cast("Transform", gem).for_preview()
    return replace(plan, gems=gems)


class Frames:
    """Builds the DataFrames of a plan; each is built once.

    Args:
        plan: The checked pipeline.
        spark: The session.
        read: How a source is read: by default through its gem; a check or a test puts its own here.
        given: An output that is there already, and its rows: nothing before it is built. They may be
            `with_file`. Of a transform that remembers they are what `recalled` gives.
        observe: Observes columns of a DataFrame under a name: then what transforms reject is counted.
        micro_batch: The micro-batch that is given; None where it isn't known.
        settle: Keeps the rows of a node that were found out outside, and gives them again.
        shared: The outputs of which several things are made.
        keep: Keeps the rows of such an output, and gives them again.
    """

    def __init__(
        self,
        plan: Plan,
        spark: SparkSession,
        read: Read | None = None,
        given: tuple[Output, DataFrame] | None = None,
        observe: Observe | None = None,
        micro_batch: RejectedIn | None = None,
        settle: Settle | None = None,
        shared: Collection[Output] = (),
        keep: Keep | None = None,
    ) -> None:
        self._shared = shared
        self._keep = keep
        self._kept: dict[Output, DataFrame] = {}
        self._micro_batch = micro_batch
        self._observe = observe
        self._settle = settle
        self._settled: dict[Path, DataFrame] = {}
        self._given = given
        self._rows = without_file(given[1]) if given is not None else None
        self._plan = plan
        self._spark = spark
        self._read = read or self._read_source
        self._built: dict[Path, Built] = {}
        self._remembered: dict[str, DataFrame] = {}
        self._rejected: dict[Path, DataFrame] = {}
        self._refused: dict[str, DataFrame] = {}

    def of(self, name: str, output: str | None = None) -> DataFrame:
        """The DataFrame that flows out of a source or transform.

        Args:
            name: The node's id.
            output: Its named output, where it has several.

        Raises:
            NodeFailure: When a gem on the way raises.
        """
        gem = remembering(self._plan, Output(name, output))
        if gem is not None:
            return self._remember(name, gem)
        self._build_with_inputs(name)
        return self._output((name, frozenset()), output)

    def _build_with_inputs(self, name: str, *, itself: bool = True) -> None:
        there = {*self._refused}
        if self._given is not None:
            # One that remembers is built of the rows that are there, and of its other inputs.
            given, gem = self._given[0], remembering(self._plan, self._given[0])
            there.add(given.node if gem is None else self._plan.node(given.node).inputs[0].node)
        for wanted in paths_behind(self._plan, name, there):
            if wanted not in self._built and (itself or wanted[0] != name):
                self._built[wanted] = self._build(wanted)

    def _remember(self, name: str, gem: Transform) -> DataFrame:
        """What a transform makes of a stream that remembers rows of earlier micro-batches."""
        if name not in self._remembered:
            self._build_with_inputs(name, itself=False)
            with _failing_as(name):
                inputs = self._inputs((name, frozenset()))
                if name in self._plan.definition.with_rejected_taken():
                    inputs[0] = with_file(inputs[0])
                self._remembered[name] = gem.remember(*inputs)
                self._analysed(self._remembered[name])
        return self._remembered[name]

    def refuse(self, node: str, rows: DataFrame) -> None:
        """Take what a node has rejected, a target mostly, so that those who take it can be built.

        Args:
            node: The id of the node.
            rows: The rows, with the columns that rejected rows have everywhere.
        """
        self._refused[node] = rows

    def hold(self, name: str) -> None:
        """Look, before anything is written, for a row that ends the query, and for too many rejected ones.

        Args:
            name: The id of a node that may end it.

        Raises:
            NodeFailure: With GB515 when it rejects more than it may; when a row ends the query, with what
                Spark says of that; and when a gem on the way raises.
        """
        from pyspark.sql import functions as F  # noqa: N812

        gem = cast("Transform", self._plan.gems[name])
        most = gem.most_rejected()
        self._build_with_inputs(name)
        with _failing_as(name):
            inputs = self._settled_inputs((name, frozenset()))
            rejects = gem.reject(*inputs) if gem.rejects() else None
            if gem.ends():
                found = rejects.rows if rejects is not None else cast("Built", gem.apply(*inputs))
                for df in _frames_of(found):
                    df.write.format("noop").mode("overwrite").save()
            if most is None or rejects is None:
                return
            broken = F.count_if(F.size(rejects.reasons) > 0)
            (counted,) = rejects.rows.agg(F.count(F.lit(1)).alias("rows"), broken.alias("rejected")).collect()
        if most.is_exceeded(counted["rejected"], counted["rows"]):
            message = f"{counted['rejected']:,} of {counted['rows']:,} rows are rejected, and {most} may be"
            hint = "Nothing of them is written. Mend the data or the rules, or allow more by `max_rejected`."
            raise NodeFailure(name, GemError("GB515", message, hint, "max_rejected"))

    def _output(self, key: Path, output: str | None) -> DataFrame:
        wanted = Output(key[0], output)
        # A second way to the same rows has a reader of its own.
        if self._keep is None or key[1] or wanted not in self._shared:
            return self._made(key, output)
        if wanted not in self._kept:
            made = self._made(key, output)
            with _failing_as(key[0]):
                self._kept[wanted] = self._keep(made)
        return self._kept[wanted]

    def _made(self, key: Path, output: str | None) -> DataFrame:
        if self._rows is not None and self._given is not None:
            if self._given[0] == (key[0], output):
                return self._rows
            if self._given[0] == (key[0], UNDIVIDED) and key not in self._built:
                self._built[key] = self._divided(key, self._rows)
        if output == REJECTED and key[0] in self._refused:
            return self._refused[key[0]]
        built = self._built[key]
        if isinstance(built, Mapping) and output in built:
            return built[output]
        if output is None and not isinstance(built, Mapping):
            return built
        if key not in self._rejected:
            self._rejected[key] = self._reject(key)
        return self._rejected[key]

    def _reject(self, key: Path) -> DataFrame:
        """The rows that a node rejects: the one output that is built only where somebody takes it."""
        from pyspark.sql import functions as F  # noqa: N812

        node, definition = self._plan.node(key[0]), self._plan.definition
        with _failing_as(node.id):
            settled = False
            if node.kind == "source":
                rejects = self._reject_records(key)
            else:
                inputs = self._settled_inputs(key)
                settled = key in self._settled
                first = node.inputs[0]
                if not settled:
                    given = self._is_given(node.id)
                    taken = Output(node.id, UNDIVIDED) if given else Output(first.node, first.output)
                    inputs[0] = self._with_file(taken, inputs[0])
                if node.kind == "target":  # which hasn't written anything
                    rejects = Rejects(inputs[0].where("false"), F.array(reason("", "")))
                else:
                    rejects = cast("Transform", self._plan.gems[node.id]).reject(*inputs)
                if self._given is not None:
                    column = event_time_column(self._plan.facts.get(first.key))
                    rejects = replace(rejects, rows=with_event_time(rejects.rows, column))
            by = Rejecting(definition.name, definition.version, node.id, node.gem)
            ask = self._given is None and not settled
            rejected = rejected_rows(rejects, by, ask=ask, micro_batch=self._micro_batch)
            self._analysed(rejected)
            return rejected

    def _reject_records(self, key: Path) -> Rejects:
        """What a source rejects; nothing where somebody else gives its rows."""
        from pyspark.sql import functions as F  # noqa: N812

        built = self._built[key]
        if isinstance(built, Mapping) and UNDIVIDED in built:
            return cast("Source", self._plan.gems[key[0]]).reject(built[UNDIVIDED])
        rows = built if not isinstance(built, Mapping) else next(iter(built.values()))
        return Rejects(rows.where("false"), F.array(reason("", "")))

    def _with_file(self, output: Output, rows: DataFrame) -> DataFrame:
        """The rows of an output with the file that each is from, where those that are given tell it."""
        if self._given is None:
            return rows
        if self._given[0] == output:
            return self._given[1]
        if remembering(self._plan, self._given[0]) is not None:
            return rows
        if self._given[0] == (output.node, UNDIVIDED) and output.name is None:
            source = cast("Source", self._plan.gems[output.node])
            return accepted_rows(self._given[1], source.rejected(self._given[1]))
        return rows

    def _divided(self, key: Path, rows: DataFrame) -> Built:
        """The undivided rows of a source, and those of them that it doesn't reject, counted."""
        source = cast("Source", self._plan.gems[key[0]])
        counted = rows
        if self._observe is not None and not key[1]:
            counted = counted_undivided(source, rows, key[0], self._observe)
        return {None: accepted_rows(counted, source.rejected(counted)), UNDIVIDED: rows}

    def _build(self, key: Path) -> Built:
        name = key[0]
        node = self._plan.node(name)
        with _failing_as(name):
            if node.kind == "target":
                return {}
            if node.kind == "source":
                built = self._analysed(self._read(node, reader_name(self._plan, key)))
                rows = built.get(UNDIVIDED) if isinstance(built, Mapping) else None
                return built if rows is None else self._divided(key, rows)
            return self._analysed(self._apply(key))

    def _apply(self, key: Path) -> Built:
        gem, inputs, observe = (
            cast("Transform", self._plan.gems[key[0]]),
            self._settled_inputs(key),
            self._observe,
        )
        if key in self._settled:
            inputs = [without_file(inputs[0]), *inputs[1:]]
        if observe is None or key[1]:  # a second way of the same rows is not counted once more
            return cast("Built", gem.apply(*inputs))
        apart = gem.told_apart(*inputs) if gem.rejects() else None
        if apart is not None:
            return counted_apart(apart, key[0], observe).where(f"not {REJECTED_HERE}").drop(REJECTED_HERE)
        built = cast("Built", gem.apply(*counted_before(gem, inputs, key[0], observe)))
        return built if isinstance(built, Mapping) else counted_behind(gem, built, inputs, key[0], observe)

    def _settled_inputs(self, key: Path) -> list[DataFrame]:
        """The inputs of a node; of one that asks outside, with what it has found out once for all."""
        inputs, node = self._inputs(key), self._plan.node(key[0])
        if self._settle is None or node.kind != "transform":
            return inputs
        gem = cast("Transform", self._plan.gems[node.id])
        if not gem.settles():
            return inputs
        if key not in self._settled:
            first = node.inputs[0]
            # What is kept elsewhere doesn't tell its file any more.
            rows = (
                with_file(inputs[0])
                if self._given is None
                else self._with_file(Output(first.node, first.output), inputs[0])
            )
            self._settled[key] = self._settle(node.id, gem.settle(rows, *inputs[1:]))
        return [self._settled[key], *inputs[1:]]

    def _inputs(self, key: Path) -> list[DataFrame]:
        edges = self._plan.node(key[0]).inputs
        paths = list(zip(paths_into(self._plan, key), edges, strict=True))
        if self._rows is not None and self._is_given(key[0]):
            return [self._rows, *(self._output(path, edge.output) for path, edge in paths[1:])]
        return [self._output(path, edge.output) for path, edge in paths]

    def _is_given(self, name: str) -> bool:
        """Whether the rows that are given are what a node has remembered of its first input."""
        return (
            self._given is not None
            and self._given[0].node == name
            and remembering(self._plan, self._given[0]) is not None
        )

    def _analysed(self, built: Built) -> Built:
        """What a gem gave; its mistakes a server tells when it is next asked, which would be for another."""
        if is_over_connect(self._spark):
            for df in _frames_of(built):
                analysed(df)
        return built

    def _read_source(self, node: Node, reader_name: str) -> Built:
        source = cast("Source", self._plan.gems[node.id])
        return read_source(source, node, reader_name, self._spark)


def recalled(plan: Plan, fork: Output, rows: DataFrame) -> DataFrame:
    """The rows of a micro-batch behind a fork; where a transform remembers, with what it has found out.

    Args:
        plan: The checked pipeline.
        fork: The fork.
        rows: What Spark has made of the micro-batch up to there.

    Raises:
        NodeFailure: When the transform raises.
    """
    gem = remembering(plan, fork)
    if gem is None:
        return rows
    with _failing_as(fork.node):
        return gem.recall(rows)


def _frames_of(built: Built) -> list[DataFrame]:
    return list(built.values()) if isinstance(built, Mapping) else [built]


def read_source(source: Source, node: Node, reader_name: str, spark: SparkSession) -> Built:
    """The rows of a source, as a stream or as a static relation, whichever the node says."""
    if node.mode == "stream":
        context = StreamReadContext(node.id, spark, reader_name, undivided=source.rejects())
        return _read(source, source.read_stream(context))
    return read_relation(source, node.id, spark)


def read_relation(source: Source, node: str, spark: SparkSession) -> Built:
    """The rows of a source as a static relation, undivided where it rejects.

    Args:
        source: The source.
        node: The id of its node.
        spark: The session.
    """
    return _read(source, source.read(ReadContext(node, spark, undivided=source.rejects())))


def _read(source: Source, rows: DataFrame) -> Built:
    return {UNDIVIDED: rows} if source.rejects() else rows


def unmarked(df: DataFrame) -> DataFrame:
    """The rows without the watermark's mark on their event-time columns.

    Spark would store the mark in the schema of a table or a file. Whoever reads that as a stream then
    has a column that looks watermarked and has no watermark, and an append-mode aggregation over it is
    accepted and never emits a row.
    """
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

    fields = df.schema.fields
    if not any(_MARK in field.metadata for field in fields) or len(set(df.columns)) < len(fields):
        return df
    columns = []
    for field in fields:
        column = F.col("`" + field.name.replace("`", "``") + "`")
        if _MARK in field.metadata:
            kept = {key: value for key, value in field.metadata.items() if key != _MARK}
            column = column.alias(field.name, metadata=kept)
        columns.append(column)
    return df.select(*columns)
