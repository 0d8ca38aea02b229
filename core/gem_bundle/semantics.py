"""What gems declare of themselves: how sources are read, what targets take, what a changed option means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date, datetime

    from gem_bundle.options import Effect

Kind = Literal["source", "transform", "target"]
OutputMode = Literal["append", "update", "complete"]
TriggerKind = Literal["default", "processing_time", "available_now", "once", "continuous", "real_time"]
DeliveryGuarantee = Literal["exactly_once", "at_least_once", "none"]
SharedPlace = Literal["fine", "conflicts", "loses_rows"]
ColumnsTaken = Literal["any", "new", "same"]
LagUnit = Literal["records", "files", "versions", "time"]

MICRO_BATCH_TRIGGERS: frozenset[TriggerKind] = frozenset(
    {"default", "processing_time", "available_now", "once"}
)
ALL_OUTPUT_MODES: frozenset[OutputMode] = frozenset({"append", "update", "complete"})
BATCH_MODES: frozenset[OutputMode] = frozenset({"append", "complete"})


@dataclass(frozen=True, slots=True)
class SourceSemantics:
    """What a source promises.

    Args:
        batch: It can be read as a static relation (`Source.read`).
        streaming: It can be read as a stream (`Source.read_stream`).
        replayable: A restarted query gets the same rows for the same offsets.
        triggers: The triggers a stream from it can be run with.
        condition: Under which condition it is replayable, in one sentence.
        backlog: Rows wait for a query to start, and come to an end when it has caught up; False for a
            source that makes or gets its rows while the query runs.
        only_new: A first run passes over what is there already, and reads only what comes after its
            start: True, or the option by which it does. Such a run reads nothing when it ends by itself.
        newest_first: The option by which newer rows come before older ones; None when they don't.
        not_continuous: Options that continuous processing ignores.
        inline: The rows stand in the options, so reading it touches nothing outside, and the tests of a
            pipeline read it as it is.
        lag: What a run can tell of what waits in a stream: how many ``records``, ``files`` or
            ``versions``, and for how long (``time``). Of sources whose offsets are counts by topic and
            partition it reads that in Spark's progress; others say it in `Source.waiting`.
    """

    batch: bool = True
    streaming: bool = True
    replayable: bool = True
    triggers: frozenset[TriggerKind] = MICRO_BATCH_TRIGGERS
    condition: str = ""
    backlog: bool = True
    only_new: bool | str = False
    newest_first: str | None = None
    not_continuous: tuple[str, ...] = ()
    inline: bool = False
    lag: frozenset[LagUnit] = frozenset()


@dataclass(frozen=True, slots=True)
class TargetSemantics:
    """What a target promises.

    Args:
        batch: It can write a static relation (`Target.write`).
        streaming: It can be the sink of a stream.
        output_modes: The output modes its sink takes (guide: *Output sinks*).
        batch_modes: What a batch may do with what is there: ``append`` to it, or replace it (``complete``).
        delivery: What a restart does to rows: ``exactly_once``, ``at_least_once``, or ``none`` for a
            sink that is for looking at.
        condition: Under which condition that holds, in one sentence.
        triggers: The triggers a stream into it can be run with.
        counts_rows: Spark itself reports how many rows the sink got
            (``StreamingQueryProgress.sink.numOutputRows``); otherwise the runtime counts them.
        restartable: A query into it can continue from its checkpoint.
        shared: What becomes of rows when two queries write to one of its places (`Target.places`):
            it is ``fine``, each ``conflicts`` with the other now and then and has to be started again,
            or one of them ``loses_rows``, because the place has a log that belongs to one query.
        async_progress: The option by which Spark writes the checkpoint beside the micro-batches and
            not between them (guide: *Asynchronous Progress Tracking*); None when it doesn't.
        replaces_intervals: It has `Target.read_interval`, `Target.replace_interval` and `Target.at`, so that
            `gem-bundle backfill` can put rows in the place of others.
        grouped: What a restart does to rows where one query writes several targets (`group`), each through
            `Target.write_batch`; None when it can't be written so. A target that is always written through
            that needn't say it: it is its `delivery`.
    """

    batch: bool = True
    streaming: bool = True
    output_modes: frozenset[OutputMode] = ALL_OUTPUT_MODES
    batch_modes: frozenset[OutputMode] = BATCH_MODES
    delivery: DeliveryGuarantee = "at_least_once"
    condition: str = ""
    triggers: frozenset[TriggerKind] = MICRO_BATCH_TRIGGERS
    counts_rows: bool = False
    restartable: bool = True
    shared: SharedPlace = "fine"
    async_progress: str | None = None
    replaces_intervals: bool = False
    grouped: DeliveryGuarantee | None = None


@dataclass(frozen=True, slots=True)
class SourcePart:
    """Which part of a source a backfill needs.

    Args:
        since: What came to the source before this moment isn't needed; None when all may be.
        until: What came to it at this moment or later isn't needed; None when all may be.
        offset: Up to where a run has read it, as the checkpoint has it: what lies behind **must not** be
            read, for the run has yet to write it. None when there is no such bound.
        log: Reads what Spark keeps of the source itself in the checkpoint: the entries of its log up to now,
            each as its number and its lines of JSON. A source of files has a line for each file that it
            has read, one of Kafka the offsets at which it began.
        complete: What was made of its rows is going to be replaced, so none of them may be missing that the
            run has read.
        filed: A column with a date, and the first and the last day that is needed: rows of other days aren't.
            None when all may be.
        began: The options by which the run began to read it, by their canonical names, as JSON has them;
            None where there is no record of that.
        former: The options by which each version of the run has read it, the oldest first, as far as there
            are records.
        reached: Up to where the run has read it, as the checkpoint has it, whether the part ends there or
            not; None when that doesn't matter.
    """

    since: datetime | None = None
    until: datetime | None = None
    offset: Any = None
    log: Callable[[], Sequence[tuple[int, Sequence[str]]]] = tuple
    complete: bool = False
    filed: tuple[str, date, date] | None = None
    began: Mapping[str, Any] | None = None
    former: Sequence[Mapping[str, Any]] = ()
    reached: Any = None


@dataclass(frozen=True, slots=True)
class Called:
    """A function or class of the pipeline's own that a node calls, so that a check can look for it.

    Args:
        reference: It, as ``module:name``.
        given: What it is given by position, in words.
        arguments: What it is given by name.
        class_given: What a class is given by position, where that isn't what a function is given.
        option: The option that names it; what it is given by name is said by ``arguments``.
    """

    reference: str
    given: tuple[str, ...] = ()
    arguments: Mapping[str, object] = field(default_factory=dict)
    class_given: tuple[str, ...] | None = None
    option: str = "function"


@dataclass(frozen=True, slots=True)
class RowsReplaced:
    """What became of an interval of a target.

    Args:
        written: How many rows there are now; None when that can't be told.
        removed: How many there were; None when that can't be told.
        last_batch: The number of the last micro-batch of `WriteContext.query` that was written before
            the interval was replaced, so that its rows were among those that are gone; None when there was
            none.
    """

    written: int | None = None
    removed: int | None = None
    last_batch: int | None = None


@dataclass(frozen=True, slots=True)
class OptionChange:
    """What another value of an option does to a query that goes on from its checkpoint.

    Args:
        effect: What it does.
        why: Why, as a sentence to the user without a full stop at its end: what becomes of rows.
        hint: What to do about it.
        idle: What becomes of a source's rows, as the end of a sentence, where Spark doesn't refuse what it
            else does, as the last micro-batch had none of them. Empty where it always refuses.
        by_id: The checkpoint knows what a source reads by an id, which it takes along: all rows are right
            where it has moved with the project's folder.
        only_order: A source gives its columns in another order, and its rows are the same.
    """

    effect: Effect
    why: str = ""
    hint: str = ""
    idle: str = ""
    by_id: bool = False
    only_order: bool = False
