"""The transform `stateful`: a processor of the pipeline's own, which keeps state for each key."""

import inspect
from collections import Counter
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gem_bundle import (
    Called,
    Column,
    Facts,
    Field,
    Finding,
    GemError,
    Kept,
    Lineage,
    Made,
    StatefulOperator,
    Transform,
    combined,
    import_function,
)
from gem_bundle.diagnostics import listed_names
from gem_bundle.expressions import UNKNOWN_DELAY, backquoted, made_of, missing_names
from gem_bundle.schema import SchemaOptions, columns_of, differ_for_certain, with_article, without_equality
from gem_bundle.types import FunctionReference, Schema, StringList
from gem_python.calling import check_call, check_pickles, user_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_TIMES = {"none": "none", "processing": "processingTime", "event": "eventTime"}
_NEEDED = {"pandas": "pandas", "pyarrow": "pyarrow", "google.protobuf": "protobuf"}
_METHODS = {
    "init": ("handle", True),
    "handleInputRows": ("key, rows, timerValues", True),
    "handleExpiredTimer": ("key, timerValues, expiredTimerInfo", False),
    "handleInitialState": ("key, initialState, timerValues", False),
    "close": ("", False),
}


class StatefulOptions(SchemaOptions):
    """Options of the transform `stateful`, from the guide's *transformWithState*."""

    processor: FunctionReference = Field(
        description="The class as `module:Class`, derived from "
        "`pyspark.sql.streaming.StatefulProcessor`; the module is a file beside the pipeline file, or of an "
        "installed package. It is imported when the pipeline runs.",
        passed=False,
        examples=["devices:Silence"],
        change="mixed",
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        passed=False,
        description="What the class is made with, by name.",
        examples=[{"minutes": 30}],
        change="mixed",
    )
    group_by: StringList = Field(
        min_length=1,
        passed=False,
        description="The columns that make the key. The processor gets their values as a tuple, in "
        "this order.",
        examples=[["device"], ["shop", "customer"]],
        change="refused",
    )
    schema: Schema = Field(  # type: ignore[assignment]
        passed=False,
        description="The columns of the rows that the processor gives.",
        examples=["device string, silent_since timestamp"],
        change="from_now_on",
    )
    time: Literal["none", "processing", "event"] = Field(
        "none",
        passed=False,
        description="What timers go by: `processing` is the clock, as each micro-batch has it; `event` is "
        "the watermark, which the input must have, and rows that are late by it are dropped; with `none` "
        "there are no timers. A time to live of state is for `processing`. A query with `processing` begins "
        "one micro-batch after the other, so with `available_now` it never ends. Declared tests set the "
        "clock.",
        change="refused",
    )
    output_mode: Literal["append", "update"] = Field(
        "append",
        passed=False,
        description="What the rows are that the processor gives: new ones (`append`), or later ones in the "
        "place of earlier ones (`update`). Spark keeps it beside the state and gives out the same rows: "
        "what a target does with them is said by its own output mode.",
        change="refused",
    )
    event_time: str | None = Field(
        None,
        min_length=1,
        passed=False,
        description="The column of `schema` that carries the watermark behind the "
        "processor, so that windows, joins and other state can follow. A row that is older than the "
        "watermark ends the query. In a batch it has no effect.",
        examples=["silent_since"],
        change="from_now_on",
    )
    initial_state: str | None = Field(
        None,
        min_length=1,
        passed=False,
        description="Which of two inputs has the state to begin with: static rows with the columns of "
        "`group_by`. In the very first micro-batch `handleInitialState` gets each.",
        examples=["known"],
        change="from_now_on",
    )
    form: Literal["rows", "pandas"] = Field(
        "rows",
        passed=False,
        description="As what the processor gets and gives rows: as `Row`s, or as pandas data frames. Spark "
        "4.0 has `pandas` only.",
        change="from_now_on",
    )


class Stateful(Transform[StatefulOptions]):
    """Keep state of your own for each key, with a `StatefulProcessor` of PySpark's.

    Spark calls `handleInputRows` with the rows of each key of a micro-batch, and `handleExpiredTimer`
    when a timer is due; what they give are the rows that come out. State that the class asks its
    handle for is kept in RocksDB, which the session is set to, and survives restarts. On
    executors pandas, PyArrow and protobuf are needed: `gem-bundle[stateful]`.
    """

    inputs: ClassVar[tuple[int, int | None]] = (1, 2)
    example = {
        "processor": "devices:Silence",
        "arguments": {"minutes": 30},
        "group_by": ["device"],
        "schema": "device string, silent_since timestamp",
        "time": "event",
    }

    def session_settings(self) -> "Mapping[str, str]":
        """Spark has such state in RocksDB only."""
        return {_STORE: _ROCKSDB}

    def called(self) -> tuple[Called, ...]:
        """The class."""
        return (Called(self.options.processor, (), self.options.arguments, option="processor"),)

    def connect(self) -> "Iterator[Finding]":
        """What PySpark needs for it is installed here."""
        missing = _missing()
        if missing:
            yield Finding("GB509", *_needs(missing))

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """What the processor gives.

        Raises:
            GemError: When the class doesn't exist, isn't a processor, can't be made or sent to executors,
                when a package that PySpark needs for it is missing, or PySpark is too old.
        """
        options = self.options
        missing = _missing()
        if missing:
            raise GemError("GB509", *_needs(missing))
        processor = self._processor()
        rows, initial = self._parted(inputs)
        grouped = rows.groupBy(*map(backquoted, options.group_by))
        known = None if initial is None else initial.groupBy(*map(backquoted, options.group_by))
        # Spark's state store asks for a service of the driver that is there with the session's queries only,
        # in a batch too.
        _ = rows.sparkSession.streams
        name = "transformWithState" if options.form == "rows" else "transformWithStateInPandas"
        transform = getattr(grouped, name, None)
        if transform is None:
            raise GemError("GB509", _TOO_OLD, _TAKE_PANDAS, "form")
        made: DataFrame = transform(
            processor,
            options.schema,
            options.output_mode,
            _TIMES[options.time],
            known,
            (rows.isStreaming and options.event_time) or "",  # a batch has no watermark to carry on
        )
        # Spark can't join such rows with themselves; those of a stream are read for each of the two.
        return made if made.isStreaming else made.toDF(*made.columns)

    def infer(self, *inputs: Facts) -> Facts:
        """The columns of the schema; the one for event time carries the watermark of the input."""
        rows, _ = self._parted(inputs)
        options = self.options
        times = [column for column in rows.columns or () if column.watermarked]
        operator = StatefulOperator(
            option="processor",
            processor=options.processor,
            time=options.time,
            mode=options.output_mode,
            watermarked=rows.watermarked,
            event_time=options.event_time is not None,
            rows=options.form == "rows",
        )
        facts = combined(operator, inputs)
        columns = columns_of(options.schema)
        if columns is None:
            return facts.with_all_columns(None)
        marked = (options.event_time or "").lower()
        delay = times[0].delay if times else UNKNOWN_DELAY if rows.watermarked is None else None
        return facts.with_all_columns(
            Column(column.name, column.type, delay if column.name.lower() == marked else None)
            for column in columns
        )

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each column of all that comes in; what is kept, and of what, is the class' own affair."""
        rows, _ = self._parted(inputs)
        columns = columns_of(self.options.schema)
        if columns is None:
            return None
        keys = [made_of(backquoted(name), rows.columns or ()) for name in self.options.group_by]
        known = [rows.column(name) for name in self.options.group_by]
        types = tuple(None if column is None else column.type for column in known)
        made = Made(f"stateful {self.options.processor} {self.options.arguments}", None)
        kept = Kept(tuple(keys), types, {"": None}, frozenset(column.name.lower() for column in columns))
        return Lineage({column.name.lower(): made for column in columns}, made, kept)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns are there and make keys, and the inputs are what they have to be."""
        options = self.options
        rows, initial = self._parted(inputs)
        yield from self._inputs(inputs)
        for facts in (rows, initial):
            if facts is not None:
                yield from missing_names(options.group_by, facts, "group_by")
                yield from _check_names(facts)
        for name in options.group_by:
            column = rows.column(name)
            if column is not None and without_equality(column.type):
                kind = with_article(column.type or "")
                yield Finding(
                    "GB213",
                    f"`{name}` is {kind}, which can't be a key",
                    "Make a text of it before: `to_json(…)`.",
                    "group_by",
                )
            other = None if initial is None else initial.column(name)
            if column is not None and other is not None and differ_for_certain(column.type, other.type):
                yield Finding(
                    "GB213",
                    f"`{name}` is {with_article(column.type or '')}, and in `{options.initial_state}` "
                    f"{with_article(other.type or '')}: the keys have to be of one type",
                    "Cast one of them before.",
                    "group_by",
                )
        yield from self._event_time()

    def _inputs(self, inputs: tuple[Facts, ...]) -> "Iterator[Finding]":
        """Which of the inputs are the rows, and which the state to begin with."""
        named = self.options.initial_state
        names = self.input_names
        if len(inputs) > 1 and named is None:
            yield Finding(
                "GB205",
                f"there are two inputs, `{names[0]}` and `{names[1]}`, and which one is the state to begin "
                "with isn't said",
                f"Write `initial_state: {names[1]}`.",
            )
        elif named is not None and (len(inputs) < 2 or named not in names):
            listed = " and ".join(f"`{name}`" for name in names)
            yield Finding(
                "GB205",
                f"`initial_state` names `{named}`, and the inputs are {listed}"
                if names
                else "no input has it",
                f"Write `inputs: [{names[0] if names else 'rows'}, {named}]`.",
                "initial_state",
            )
        _, initial = self._parted(inputs)
        if initial is not None and initial.streaming:
            yield Finding(
                "GB205",
                f"`{named}`, the state to begin with, is a stream: only its first micro-batch would count",
                "Read it with `mode: batch`.",
                "initial_state",
            )

    def _event_time(self) -> "Iterator[Finding]":
        """The column that carries the watermark behind it is one, and a timestamp."""
        name = self.options.event_time
        columns = columns_of(self.options.schema)
        if name is None or columns is None:
            return
        column = next((column for column in columns if column.name.lower() == name.lower()), None)
        if column is None:
            listed = listed_names(known.name for known in columns)
            yield Finding(
                "GB205", f"`schema` has no column `{name}`, only {listed}", "Name one of them.", "event_time"
            )
        elif column.type != "timestamp":
            kind = with_article(column.type or "")
            yield Finding(
                "GB205",
                f"`{name}` is {kind}; event time must be a timestamp",
                "Let `schema` make it one.",
                "event_time",
            )

    def _parted(self, inputs: tuple[Any, ...]) -> tuple[Any, Any]:
        """The rows, and the state to begin with where there is one."""
        if len(inputs) < 2:
            return inputs[0], None
        first = self.input_names[:1] == (self.options.initial_state,)
        return (inputs[1], inputs[0]) if first else (inputs[0], inputs[1])

    def _processor(self) -> Any:
        """An instance of the class, which can be called as Spark will, and sent to executors."""
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor

        options = self.options
        reference = options.processor
        found = import_function(reference, option="processor")
        if not (inspect.isclass(found) and issubclass(found, StatefulProcessor)):
            raise GemError(
                "GB506",
                f"`{reference}` is no class derived from `pyspark.sql.streaming.StatefulProcessor`",
                "Derive it: `class Silence(StatefulProcessor)`.",
                "processor",
            )
        check_call(found, reference, options.arguments, (), "", option="processor")
        with user_code(reference, option="processor"):
            processor = found(**options.arguments)
        for name, (parameters, needed) in _METHODS.items():
            self._check_method(processor, name, parameters, needed=needed)
        check_pickles(processor, reference, "processor", _OPEN_IN_INIT)
        return processor

    def _check_method(self, processor: object, name: str, parameters: str, *, needed: bool) -> None:
        method = getattr(processor, name, None)
        if method is None and not needed:
            return
        try:
            inspect.signature(method).bind(*[part for part in parameters.split(", ") if part])  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise GemError(
                "GB507",
                f"`{self.options.processor}.{name}` can't be called as `{name}({parameters})`: {error}",
                "Change its parameters.",
                "processor",
            ) from error


def _check_names(facts: Facts) -> "Iterator[Finding]":
    """The processor gets rows whose columns each have a name of their own."""
    counted = Counter(column.name.lower() for column in facts.columns or ())
    for name in (name for name, count in counted.items() if count > 1):
        message = f"there are several columns `{name}`, and a processor gets rows with one of a name"
        yield Finding("GB211", message, "Give them different names before, or drop one.")


def _missing() -> list[str]:
    """The packages that PySpark needs for it and that aren't installed."""
    found = []
    for module, package in _NEEDED.items():
        try:
            there = find_spec(module) is not None
        except ModuleNotFoundError:  # of a package's module, where there is no such package
            there = False
        if not there:
            found.append(package)
    return found


def _needs(missing: list[str]) -> tuple[str, str]:
    listed = " and ".join(missing)
    are = "isn't" if len(missing) == 1 else "aren't"
    return (
        f"PySpark needs {listed} for processors with state, which {are} installed",
        "Install it with `pip install 'gem-bundle[stateful]'`; executors need it too.",
    )


_TOO_OLD = "processors of rows (`transformWithState`) are in Spark since 4.1, and this PySpark is older"
_TAKE_PANDAS = "Write `form: pandas`, and let the processor take and give pandas data frames."
_OPEN_IN_INIT = "Open connections, files and locks in `init`, on executors, and keep none in `__init__`."
