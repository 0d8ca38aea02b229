"""What a gem is: the contract between a plugin and the runtime.

A gem is a class with options. Whoever writes one derives from `Source`, `Transform` or `Target`,
generic over an `Options` model, and registers it through `gem_bundle.hookspecs`. The runtime makes
one instance for each node of a pipeline, with validated options whose references and paths are
resolved. Instances are made on the driver and stay there: only what a gem hands to Spark (a
function for `foreachBatch`, say) may have to pickle, and then its method says so.

Gems use public PySpark API only: no ``_jvm``, no ``_jdf``, no ``sparkContext``, so that they work over
Spark Connect. pyspark is imported inside methods or under TYPE_CHECKING.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, get_args, get_origin

from typing_extensions import TypeVar

from gem_bundle.facts import UNKNOWN_OPERATOR, Facts, combined
from gem_bundle.options import NoOptions, Options
from gem_bundle.rejected import Counts
from gem_bundle.semantics import SourceSemantics, TargetSemantics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_bundle.contexts import ReadContext, StreamReadContext, WriteContext
    from gem_bundle.diagnostics import Finding
    from gem_bundle.facts import Column
    from gem_bundle.lineage import Lineage, Step
    from gem_bundle.rejected import MostRejected, Rejects
    from gem_bundle.semantics import Called, ColumnsTaken, Kind, OptionChange, RowsReplaced, SourcePart
    from gem_bundle.waiting import Waiting, WaitingContext

OptionsT = TypeVar(  # noqa: PLC0105 (the name stands in every signature)
    "OptionsT", bound=Options, covariant=True, default=Options
)


class _Delivery:
    """What Spark calls with each micro-batch: it knows whose they are.

    It travels without the session. On the server of Spark Connect that of the micro-batch knows the query;
    in a session of one's own that is a copy, which doesn't.
    """

    def __init__(self, target: Target[Any], context: WriteContext, session: SparkSession) -> None:
        self._target = target
        self._context = context
        self._session: SparkSession | None = session

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        if self._context.query_name and not self._context.query:
            streams = (self._session or batch.sparkSession).streams
            ids = [query.id for query in streams.active if query.name == self._context.query_name]
            if len(ids) == 1:
                self._context = replace(self._context, query=str(ids[0]))
        self._target.write_batch(batch, batch_id, self._context)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}


class Gem(Generic[OptionsT]):
    """What sources, transforms and targets have in common. Derive from one of those.

    The first sentence of a gem's docstring is its summary in `gem-bundle gems`.

    Attributes:
        kind: ``source``, ``transform`` or ``target``.
        options_type: The `Options` model; taken from the generic argument.
        example: Options that make a working node, as a mapping; shown by `gem-bundle describe`.
        options: The validated options of this node.
    """

    kind: ClassVar[Kind]
    options_type: ClassVar[type[Options]] = NoOptions
    example: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__dict__.get("__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, Gem):
                argument = get_args(base)[0]
                if isinstance(argument, type) and issubclass(argument, Options):
                    cls.options_type = argument

    def __init__(self, options: OptionsT) -> None:
        self.options = options

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the docstring, in one line."""
        text = inspect.cleandoc(cls.__doc__ or "").split("\n\n", 1)[0]
        return " ".join(text.split())

    def jars(self) -> Iterable[str]:
        """Maven coordinates this node needs, with ``{spark}`` and ``{scala}`` as placeholders.

        Called once before the session starts, without a JVM.
        """
        return ()

    def jar_classes(self) -> Iterable[str]:
        """Java classes that are there when this node's jars are: one of each, by its full name.

        Asked for in sessions whose jars somebody else chose (a Spark Connect server, a notebook,
        ``spark-submit``), so that what is missing is said before anything starts.
        """
        return ()

    def session_settings(self) -> Mapping[str, str]:
        """Spark settings the session must start with for this node, for example an extension.

        Called once before the session starts, without a JVM. Comma-separated list settings
        (``spark.sql.extensions``) of several gems are joined.
        """
        return {}

    def local_settings(self) -> Mapping[str, str]:
        """Spark settings that make this node fast in a local session, on one machine and its data.

        Called like `session_settings`. They are defaults: used in local sessions only, and whatever
        anybody else says wins.
        """
        return {}

    def check(self, *inputs: Facts) -> Iterable[Finding]:  # noqa: ARG002 (for those who override it)
        """The gem's own rules: what is wrong with these options over these inputs.

        Called once by every `gem-bundle check` and before every run, without a JVM and without a
        network. It must not look at data, open files or import the user's code.

        Args:
            inputs: The facts of the node's inputs, in order; a source has none.
        """
        return ()

    def called(self) -> Iterable[Called]:
        """The functions and classes of the pipeline's own that this node calls.

        Asked for by every check, which looks for them in their sources and imports nothing. A gem finds
        them by `import_function`, when the pipeline runs.
        """
        return ()

    def change(self, option: str, before: Any) -> OptionChange | None:  # noqa: ARG002 (for those who override it)
        """What another value of an option does, where the one word of its `Field` isn't enough.

        Called by `gem-bundle plan` and before every run, for each option whose value isn't the one that
        ran last, without a JVM and without a network. `options` are the new ones. Speak of this node
        alone: what becomes of state behind it is found out by the runtime, so a transform that keeps
        none says ``from_now_on``.

        Args:
            option: The option.
            before: The value that it had, as JSON has it, defaults filled in.

        Returns:
            None, which is the default, leaves it to the option's `Field`. Where that says nothing either,
            an option of a node with state counts as ``mixed``, any other as ``from_now_on``.
        """
        return None

    def connect(self) -> Iterable[Finding]:
        """The preflight: try what the node needs from the outside (broker, path, table).

        Called by `gem-bundle check --connect` and before every run, without a JVM. It may open
        connections, must give up by itself within some seconds, and must change nothing.
        """
        return ()


class Source(Gem[OptionsT]):
    """Rows from outside. Implement `read`, `read_stream` or both, and declare `semantics`.

    Attributes:
        semantics: What the source promises; a class declares it, and an instance may replace it where
            options change it.
        streaming: Whether this node is read as a stream. Set by the runtime before `check` and
            `infer`; None when nobody has said.
    """

    kind: ClassVar[Kind] = "source"
    semantics: SourceSemantics = SourceSemantics()
    streaming: bool | None = None

    def read(self, context: ReadContext) -> DataFrame:
        """The rows as a static relation.

        Called on the driver once for each run, in batch pipelines and for nodes with ``mode: batch``.

        Raises:
            GemError: When the rows can't be read and the gem knows why.
        """
        raise NotImplementedError

    def read_stream(self, context: StreamReadContext) -> DataFrame:
        """The rows as a stream.

        Called on the driver once for each path from this node to a target, so it must not keep
        state between calls. Use `context.reader`: it carries the reader's stable name.

        Raises:
            GemError: When the stream can't be opened and the gem knows why.
        """
        raise NotImplementedError

    @classmethod
    def can_reject(cls) -> bool:
        """Whether there are options with which it `rejects`."""
        return cls.reject is not Source.reject

    def rejects(self) -> bool:
        """Whether it has, with these options, the output `rejected`: records that it can't read.

        Other nodes take it as ``id.rejected``. Then `read` and `read_stream` give, where the context says
        ``undivided``, all rows, and else those that aren't rejected. Columns whose names begin with
        ``__gem_bundle_`` are for telling them apart, and don't go on; `gem_bundle.ORIGIN` is one that tells
        where each row is from, as a map of texts. Whether a row is rejected is up to the row alone.
        """
        return False

    def rejected(self, rows: DataFrame) -> SparkColumn:
        """A column that is true of the rows that are rejected, and never null.

        Args:
            rows: The undivided rows.
        """
        raise NotImplementedError

    def reject(self, rows: DataFrame) -> Rejects:
        """Which rows are rejected, and why; the runtime makes the output `rejected` of that.

        Args:
            rows: The undivided rows.
        """
        raise NotImplementedError

    def places(self) -> Mapping[str, Iterable[str]]:
        """Where the rows come from, so that a check can tell when two nodes mean the same data.

        Called by every check, without a JVM and without a network. By default nothing is known.

        Returns:
            The places by the option that names them. A place is a path or URL, which stands for the
            files right in that folder, may hold Hadoop's wildcards, and with ``/**`` at its end stands for
            the folders below too; ``table:catalog.schema.name``; or what else tells places of one
            kind apart, such as ``kafka://broker:9092/topic`` for each of the brokers. How a path is
            written (``file:``, ``..``, a slash at the end) doesn't matter.
        """
        return {}

    def infer(self) -> Facts:
        """What is known of the rows without looking at them: the columns of a declared schema, say.

        Called by every check, without a JVM and without a network. `streaming` and `bounded` are
        set by the runtime, which knows the node's mode.
        """
        return Facts()

    def begins(self) -> str:
        """From where a first run reads, as the end of a sentence: ``from its beginning``.

        Called by `gem-bundle plan` for a source that no checkpoint knows yet.
        """
        if self.semantics.only_new:
            return "from what comes after the start"
        return "from its beginning" if self.semantics.backlog else "as it comes"

    def waiting(self, context: WaitingContext) -> Waiting | None:  # noqa: ARG002 (for those who override it)
        """How much of a stream a running query has yet to read, where Spark doesn't tell it.

        Called by a run after its micro-batches, in a thread of its own: a source that takes long is asked
        less often. `semantics.lag` says of what it tells.

        Args:
            context: Up to where the query has read its sources, and its checkpoint.

        Returns:
            None where that isn't known.
        """
        return None

    def discover(self) -> Iterable[Column] | None:
        """The columns of what is there: of a table's own metadata, of the header of a file.

        Called by `gem-bundle check --connect` only, once for each node, and only where `infer` leaves
        the columns unknown; never before a run, where Spark itself looks. Secrets are resolved. It
        may do what `connect` may: open connections and read metadata, without a JVM. It must give up
        by itself within some seconds, and must change nothing. Other nodes' gems are asked at the same
        time, in other threads.

        Say only what is certain, since the rules take it as it is: a column has no type where only its
        name is certain, and the answer is None where not all names are. Nothing need be said of what
        isn't there: that is up to `connect`.

        Returns:
            The columns in the order in which `read`, or for a node that is `streaming` `read_stream`,
            will have them; None when they can't be told, which is the default.

        Raises:
            GemError: When it can't look, and the gem knows why. The columns stay unknown.
        """
        return None

    def for_preview(self) -> Source[OptionsT]:
        """A source that reads the first rows and changes nothing outside; by default this one.

        Called by `gem-bundle preview`. Override it where reading has effects (files that are
        archived) or where the first rows are not read by default (only what is new).
        """
        return self

    def for_backfill(self, part: SourcePart) -> PartRead | None:
        """A source whose `read` gives the rows that a stream of this one has, or would have, had.

        Called by `gem-bundle backfill` for each reader and each step, without a JVM. It may open connections.
        The source has to give all rows of the part, and may give others, but none behind
        `SourcePart.offset`. By default it is read whole, which it can't be where there is an offset.

        Returns:
            None when it can't end where the part does.

        Raises:
            GemError: GB453, when its rows can't be read once more, or not all that have to be there.
        """
        return PartRead(self) if part.offset is None else None


@dataclass(frozen=True, slots=True)
class PartRead:
    """How a source reads a part of itself.

    Args:
        source: The source whose `read` does it.
        part: What it reads, for the user: ``whole``, ``up to version 7``.
    """

    source: Source
    part: str = "whole"


class Transform(Gem[OptionsT]):
    """Rows into rows. Implement `apply`, and `infer` as far as it can be known.

    Attributes:
        inputs: How many inputs it takes: the least and the most (None: any number).
        input_names: The names of this node's inputs, in order: the ids of the nodes, or the keys of
            ``inputs: {left: …, right: …}``. Set by the runtime before `check`, `infer` and `apply`.
        by_name: The order of its inputs means nothing: it finds them by `input_names`.
        node: The id of this node. Set by the runtime, like `input_names`.
    """

    kind: ClassVar[Kind] = "transform"
    inputs: ClassVar[tuple[int, int | None]] = (1, 1)
    by_name: ClassVar[bool] = False
    input_names: tuple[str, ...] = ()
    node: str = ""

    def apply(self, *inputs: DataFrame) -> DataFrame | Mapping[str, DataFrame]:
        """The transformed rows: one DataFrame, or a mapping of the named `outputs`.

        Called on the driver, once for each path from its sources to a target; it builds a plan and
        must not run one (no ``collect``, no ``count``).

        Args:
            inputs: The inputs in the order the pipeline file names them; `input_names` has the
                names by which expressions may refer to them.

        Raises:
            GemError: When the plan can't be built and the gem knows why.
        """
        raise NotImplementedError

    def discover(self) -> None:
        """Look outside for what `infer`, `lineage` and `check` need to know, and keep it for them.

        Called by `gem-bundle check --connect` only, before `infer`, once for each node; never before a run.
        It may do what `connect` may, and is called as `Source.discover` is: in a thread, while others are
        asked. Nothing need be said of what isn't there: that is up to `connect`.

        Raises:
            GemError: When it can't look, and the gem knows why. What isn't known stays unknown.
        """

    def for_preview(self) -> Transform[OptionsT]:
        """A transform with the same columns that changes nothing outside; by default this one.

        Called where nothing may be changed: by `gem-bundle preview`, `check --engine` and tests of pipelines.
        Override it where `apply` has effects.
        """
        return self

    def outputs(self) -> tuple[str, ...]:
        """The names of its outputs, where it has several; empty for the one unnamed output."""
        return ()

    @classmethod
    def can_reject(cls) -> bool:
        """Whether there are options with which it `rejects`."""
        return cls.reject is not Transform.reject

    def rejects(self) -> bool:
        """Whether it has, with these options, the output `rejected` beside its ordinary one.

        Other nodes take it as ``id.rejected``. `apply` must leave out then what `reject` finds, so that each
        row that comes in is in one of the two outputs, whoever takes them: the two are different
        queries, where different targets take them. So what decides may be the row alone, and never a
        clock, chance, or another row.
        """
        return False

    def reject(self, *inputs: DataFrame) -> Rejects:
        """Which rows are rejected, and why; the runtime makes the output `rejected` of that.

        Called like `apply`, where it `rejects` and another node takes that.

        Raises:
            GemError: When the plan can't be built and the gem knows why.
        """
        raise NotImplementedError

    def told_apart(self, *inputs: DataFrame) -> DataFrame | None:  # noqa: ARG002 (for those who override it)
        """What comes out and what is rejected in one, where the rows that come in can't tell it.

        Called in the place of `apply`, where it `rejects` and rows are counted: a join knows only behind it
        which rows had no partner. `apply` has to give those that aren't rejected.

        Returns:
            The rows as they come out, and each that is rejected once, with a further column at the end,
            `gem_bundle.REJECTED_HERE`, which is true of these and never null. None, the default, where
            `counts` tells it, or the rows behind it do.
        """
        return None

    def settles(self) -> bool:
        """Whether what it makes of a row, and so whether it rejects it, may be another the next time.

        It asks somebody outside. The runtime then keeps what `settle` has found out, and each target of a
        micro-batch gets rows by that, also when the micro-batch comes again. In a stream whose rejected rows
        are taken, all targets of its rows have to be in a group.
        """
        return False

    def settle(self, *inputs: DataFrame) -> DataFrame:
        """The rows of the first input, with what decides in columns called ``__gem_bundle_…``.

        Called like `apply`, where it `settles`. What it gives is kept, and given to `apply` and `reject` in
        the place of the first input: these have to see that by the columns, and leave them out of what they
        give.
        """
        raise NotImplementedError

    def most_rejected(self) -> MostRejected | None:
        """How many rows of a micro-batch it may reject; when there are more, nothing of it is written.

        In a stream all targets of its rows have to be in a group, where a micro-batch is counted before any
        of it is written.
        """
        return None

    def ends(self) -> bool:
        """Whether a row may end the query, as `gem_bundle.ending` has it.

        Where several targets are written of the same rows, as in a group, such a row is looked for before
        any of them is, among the rows of `reject` where it `rejects`, else among those of `apply`: nothing of
        the micro-batch is written then.
        """
        return False

    def compares_rows(self) -> bool:
        """Whether what becomes of a row is up to other rows of its micro-batch, or in a batch of its table.

        `apply` and `reject` are then given tables only: in a stream all targets of its rows have to be in one
        group, which has each micro-batch as a table and asks both about the same one. What becomes of the
        rows may be up to their values alone, not to their order.
        """
        return False

    def remembers(self) -> int:
        """How many rows `remember` makes of each; 0, the default, where it isn't asked.

        With these options what becomes of a row is up to rows of earlier micro-batches too, so it
        `compares_rows`, and in a stream it has state. The query of the targets behind it forks at it then:
        `remember` is the end of what Spark computes as a stream, and what `recall` makes of each micro-batch
        of that is given to `apply` and `reject`.
        """
        return 0

    def remember(self, *inputs: DataFrame) -> DataFrame:
        """The rows of a stream, through an operator with state of which `infer` tells.

        Called like `apply`. It may add columns called ``__gem_bundle_…``, and rows: `remembers` tells how
        many there are of each row before the operator drops any, those that are late by the watermark too.
        """
        raise NotImplementedError

    def recall(self, rows: DataFrame) -> DataFrame:
        """The rows of the first input, with what decides in columns called ``__gem_bundle_…``.

        Called for each micro-batch, before it is written. `apply` and `reject` are given the result in the
        place of the first input, and go by the columns where they find them. `apply` leaves them out.

        Args:
            rows: What `remember` has made of the micro-batch, as a table.
        """
        raise NotImplementedError

    def judged(self, *inputs: DataFrame) -> DataFrame:
        """The rows of the first input, with what decides on each in columns called ``__gem_bundle_…``.

        Called before `counts` and `apply` where rows are counted. Both are given the result in the place of
        the first input, and go by its columns where they find them: counted conditions are computed a second
        time otherwise. `apply` leaves the columns out. By default the rows as they are.
        """
        return inputs[0]

    def counts(self, *inputs: DataFrame) -> Counts:  # noqa: ARG002 (for those who override it)
        """Which rows are counted on their way, so that the report of a run tells of them.

        Called like `apply`. Rows that it `rejects` are counted by themselves.
        """
        return Counts()

    def infer_rejected(self, *inputs: Facts) -> Facts:
        """What is known of the output `rejected`; its columns are the same for all gems.

        Called like `infer`. By default it is known of a transform with one input that keeps no state.
        """
        from gem_bundle.rejected import rejected_facts

        if len(inputs) == 1:
            return rejected_facts(inputs[0])
        return rejected_facts(combined(UNKNOWN_OPERATOR, inputs))

    def infer(self, *inputs: Facts) -> Facts:
        """What is known of the rows that come out, given what is known of those that go in.

        Called by every check, without a JVM. By default only the streaming-ness is known; columns
        and operators are unknown.
        """
        return combined(UNKNOWN_OPERATOR, inputs)

    def infer_output(self, output: str, *inputs: Facts) -> Facts:  # noqa: ARG002 (for those who override it)
        """What is known of the rows of one of its named `outputs`.

        Called like `infer`, for each. By default it is what `infer` says, but for the columns, which are
        unknown.
        """
        return self.infer(*inputs).with_columns(None)

    def lineage(self, *inputs: Facts) -> Lineage | None:  # noqa: ARG002 (for those who override it)
        """What comes of what: so that `gem-bundle plan` can tell what an edit in front of it reaches.

        Called like `infer`, by `gem-bundle plan` and before a run on a checkpoint. By default that isn't
        known, and an edit in front reaches everything.
        """
        return None

    def steps(self, *inputs: Facts) -> Sequence[Step] | None:  # noqa: ARG002 (for those who override it)
        """The transforms of this gem that do the same one behind another, of one that does several things.

        Called like `lineage`, where that doesn't tell what is kept of which rows: what each of the steps
        keeps of a stream is found out instead. The last one gives the rows.

        Returns:
            By default None: it can't be taken apart.
        """
        return None

    def order_of_inputs(self) -> Sequence[int] | None:
        """The positions of its inputs in the order in which the plan that `apply` builds has them.

        From left to right, as the inputs of joins and unions stand in it; by that Spark tells sources apart
        where a checkpoint has no names for them. Called by `gem-bundle plan` and at a run's start, when
        `input_names` is set.

        Returns:
            By default the order of the inputs; None where it can't be known.
        """
        return range(len(self.input_names))

    def inputs_as_planned(self) -> Sequence[int] | None:
        """The positions of its inputs in the order in which Spark's optimized plan has them.

        Each as often as it stands there: what keeps state in front of an input that is named twice does so
        twice. Called by `gem-bundle plan` and at a run's start, when `input_names` is set.

        Returns:
            By default `order_of_inputs`; None where it can't be known.
        """
        return self.order_of_inputs()

    def lineage_output(self, output: str, *inputs: Facts) -> Lineage | None:  # noqa: ARG002 (as above)
        """What comes of what in one of its named `outputs`.

        Called like `lineage`, for each that a node takes. By default that isn't known.
        """
        return None


class Target(Gem[OptionsT]):
    """Rows to outside. Declare `semantics`; implement `write` and one of the streaming methods.

    Attributes:
        semantics: What the target promises; a class declares it, and an instance may replace it where
            options change it.
    """

    kind: ClassVar[Kind] = "target"
    semantics: TargetSemantics = TargetSemantics()

    def places(self) -> Mapping[str, Iterable[str]]:
        """Where the rows go to, as `Source.places` says where they come from; without wildcards."""
        return {}

    def discover(self) -> None:
        """Look outside for what `check` needs to know, and keep it for it.

        Called by `gem-bundle check --connect` only, as `Transform.discover` is; never before a run.

        Raises:
            GemError: When it can't look, and the gem knows why. What isn't known stays unknown.
        """

    def begins_anew(self) -> OptionChange | None:
        """What a query without a checkpoint does to rows, because of what is in its place already.

        Called by `gem-bundle plan` and before a run for a target that has no checkpoint yet, and whose
        sources are read from their beginning; without a JVM. It may look at the place's own metadata,
        must give up by itself within some seconds, and must change nothing.

        Returns:
            For a place that has rows: ``again`` where they come once more, ``skipped`` where some of
            them are never written; None where there is nothing yet, where rows are replaced, and where that
            can't be told, which is the default.
        """
        return None

    def takes_over(self) -> OptionChange | None:
        """What becomes of rows when it goes on from a checkpoint that another gem has written with.

        Called by `gem-bundle plan` and before a run for a target whose gem isn't the one that ran last,
        without a JVM and without a network. Its place then gets micro-batches from the middle: their numbers
        don't begin with 0, and what came before isn't there.

        Returns:
            ``from_now_on`` where the rows that come from now on are in its place, and can be read there;
            ``mixed`` where they can't be read; ``refused`` where the query fails. None, which is the default,
            leaves it to the rule: ``mixed`` for a gem with a `write_stream` of its own, for a sink may keep a
            log of its micro-batches that has to be whole, else ``from_now_on``.
        """
        return None

    @classmethod
    def can_reject(cls) -> bool:
        """Whether there are options with which it `rejects`."""
        return cls.rejects is not Target.rejects

    def rejects(self) -> bool:
        """Whether it has, with these options, the output `rejected`: rows that it learns were refused.

        Other nodes take it as ``id.rejected``, and are written by the same query, right behind this target.
        `write` and `write_batch` tell of the rows by `WriteContext.reject` or `WriteContext.send`: each row
        is delivered or told of. It has to be a target that can be in a group.
        """
        return False

    def columns_taken(self, settings: Mapping[str, str]) -> ColumnsTaken:  # noqa: ARG002 (for those who override it)
        """Which rows fail because of their columns, where the place holds others already.

        Called by every check, without a JVM and without a network.

        Args:
            settings: The Spark settings of the pipeline, which may be a switch for all places of a kind.

        Returns:
            ``same``: those with a column that the place doesn't have, or has with another type; ``new``:
            those with another type only, for new columns are added; ``any``: none, as far as is known.
        """
        return "any"

    def columns_by_place(self, columns: Sequence[str]) -> Sequence[str]:  # noqa: ARG002 (as above)
        """The columns that the place tells apart by nothing but their order, as files of CSV do.

        Called when a pipeline has changed: where one of them stands elsewhere than before, what is written
        from then on gets into other columns.

        Args:
            columns: The names of the columns that come.

        Returns:
            Those that are written so, in order; none by default, for most places know columns by their names.
        """
        return ()

    def columns_by_type(self, columns: Sequence[str]) -> Sequence[str]:  # noqa: ARG002 (as above)
        """The columns whose types are written down with the rows, by a place that holds no row to them.

        Called when a pipeline has changed: where one of them has another type than before, nobody can read
        what was written and what is from then on as one table.

        Args:
            columns: The names of the columns that come.

        Returns:
            Those that are written so; none by default, for most places have one type for a column, or none.
        """
        return ()

    def write(self, df: DataFrame, context: WriteContext) -> None:
        """Write a static relation; called once for each run of a batch pipeline, on the driver.

        ``context.output_mode`` is ``append`` (add the rows) or ``complete`` (replace what is there).

        Raises:
            GemError: When the rows can't be written and the gem knows why.
        """
        raise NotImplementedError

    def write_stream(self, df: DataFrame, context: WriteContext) -> DataStreamWriter:
        """The configured writer of a stream: format and options, nothing else.

        Called once for each run, on the driver. The runtime adds output mode, trigger, checkpoint
        and query name, and starts it through `start`. By default the writer hands every
        micro-batch to `write_batch`.

        Raises:
            GemError: When the sink can't be used and the gem knows why.
        """
        return df.writeStream.foreachBatch(_Delivery(self, context, df.sparkSession))

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:
        """Write one micro-batch, for targets that need ``foreachBatch``, and for those in a group.

        Called on the driver once for each micro-batch, and **again with the same `batch_id` and
        the same rows** when a run died between the write and Spark's commit: a target that says
        ``exactly_once`` must then leave every row there once; in a group ``context.query`` and `batch_id`
        name the micro-batch. Targets of a group are called side by side, each in a thread of its own.
        """
        raise NotImplementedError

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start the configured writer; override it where the sink is started by another method."""
        return writer.start()

    @classmethod
    def holds_rejected(cls) -> bool:
        """Whether rejected rows that it wrote somewhere can be read there again, by `read_rejected`."""
        return cls.semantics.replaces_intervals or cls.read_rejected is not Target.read_rejected

    def read_rejected(self, context: ReadContext) -> DataFrame | None:
        """The rejected rows that are in the place of this target, each as often as it was rejected.

        Called by `gem-bundle replay` and `gem-bundle rejected`, for targets of the pipeline and for those
        that `at` makes of a place. By default they are read by `read_interval`.

        Returns:
            The rows with the columns that rejected rows have; None when there is no such place.

        Raises:
            GemError: When they can't be read and the gem knows why.
        """
        return self.read_interval("true", context)

    @classmethod
    def at(cls, place: str) -> Target | None:
        """A target of this kind that writes to another place, for ``gem-bundle backfill --into``.

        Called for targets that say `TargetSemantics.replaces_intervals`, and for those that have
        `read_rejected`.

        Args:
            place: A path, absolute or a URL, or ``table:`` and the name of a table.

        Returns:
            None for a place that it can't write to.
        """
        raise NotImplementedError

    def read_interval(self, condition: str, context: ReadContext) -> DataFrame | None:
        """The rows of the target for which a condition holds; None when there is no such place yet.

        Args:
            condition: A condition in Spark's SQL over a column that has a time.
            context: The session.
        """
        raise NotImplementedError

    def last_batch(self, query: str, context: ReadContext) -> int | None:  # noqa: ARG002 (for those who override it)
        """The number of the last micro-batch of a query that is in the place.

        Called by `gem-bundle backfill` before the rows of an interval are computed, and right before they are
        to be replaced: what they don't have must not be there yet. Without it, rows of a micro-batch that was
        written in the meantime are gone until the interval is computed once more.

        Args:
            query: The query, as `WriteContext.query` has it.
            context: The session.

        Returns:
            None when there is none, or that can't be told.
        """
        return None

    def replace_interval(self, df: DataFrame, condition: str, context: WriteContext) -> RowsReplaced | None:
        """Put rows in the place of those for which a condition holds; others see all of that or nothing.

        Called once for each interval of `gem-bundle backfill`, on the driver, **and once more** after a run
        that died. A streaming query may be writing to the place at the same time.

        Args:
            df: The rows; the condition holds for each.
            condition: A condition in Spark's SQL over a column that has a time.
            context: The node, and the query that may be writing.

        Returns:
            None when nothing was changed because somebody else wrote such rows in the meantime: it is called
            once more then, with rows that are up to date.
        """
        raise NotImplementedError
