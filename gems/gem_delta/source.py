"""The source `delta`: the rows of a Delta table, or what changed in it."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import NonNegativeInt, model_validator

from gem_bundle import (
    Column,
    Facts,
    Field,
    Finding,
    GemError,
    OptionChange,
    PartRead,
    ReadContext,
    Source,
    SourcePart,
    SourceSemantics,
    StreamReadContext,
    analysed,
)
from gem_bundle.types import ByteSize, DataPath, Timestamp, local_path
from gem_delta.connection import (
    DeltaOptions,
    NeedsDelta,
    RawOptions,
    says_absent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from gem_bundle import Waiting, WaitingContext

_STREAM_ONLY = (
    "max_files_per_trigger",
    "max_bytes_per_trigger",
    "ignore_deletes",
    "ignore_changes",
    "skip_change_commits",
    "fail_on_data_loss",
    "exclude_regex",
    "schema_tracking_location",
    "streaming_source_tracking_id",
    "allow_source_column_rename",
    "allow_source_column_drop",
    "allow_source_column_type_change",
)
_BATCH_ONLY = ("version_as_of", "timestamp_as_of", "ending_version", "ending_timestamp")
_STARTS = ("starting_version", "starting_timestamp")

# What the change feed adds (Delta: *Change data feed*).
_CHANGE_COLUMNS = (
    Column("_change_type", "string"),
    Column("_commit_version", "bigint"),
    Column("_commit_timestamp", "timestamp"),
)

Unblocked = Literal["always"] | NonNegativeInt


class DeltaSourceOptions(DeltaOptions):
    """Options of the source `delta`, from Delta's *Table streaming reads* and *Change data feed*."""

    starting_version: Literal["latest"] | NonNegativeInt | None = Field(
        None,
        description="Read what changed from this version of the table on; `latest` is only what comes "
        "after the stream began (default: the whole table, then what comes). A checkpoint wins once a "
        "micro-batch is committed to it; before that Delta looks `latest` up anew.",
    )
    starting_timestamp: Timestamp | None = Field(
        None, description="Read what was committed from this time on, in place of `starting_version`."
    )
    max_files_per_trigger: int | None = Field(
        None, gt=0, description="The most files a micro-batch takes (default: 1000).", change="continues"
    )
    max_bytes_per_trigger: ByteSize | None = Field(
        None,
        gt=0,
        description="The most bytes a micro-batch takes, about; with `max_files_per_trigger`, whichever "
        "comes first.",
        examples=["1g"],
        change="continues",
    )
    read_change_feed: bool | None = Field(
        None,
        description="Read inserts, updates and deletes as rows, with the columns `_change_type`, "
        "`_commit_version` and `_commit_timestamp`. The table must keep its change feed.",
    )
    ending_version: NonNegativeInt | None = Field(
        None, description="The last version of a batch of the change feed.", change="continues"
    )
    ending_timestamp: Timestamp | None = Field(
        None,
        description="The last time of a batch of the change feed, in place of `ending_version`.",
        change="continues",
    )
    version_as_of: NonNegativeInt | None = Field(
        None, description="The version a batch reads (default: the last).", change="continues"
    )
    timestamp_as_of: Timestamp | None = Field(
        None,
        description="The time whose version a batch reads, in place of `version_as_of`.",
        change="continues",
    )
    skip_change_commits: bool | None = Field(
        None, description="Whether a stream passes over commits that change or delete rows, and goes on."
    )
    ignore_deletes: bool | None = Field(
        None, description="Whether a stream goes on when whole partitions are deleted."
    )
    ignore_changes: bool | None = Field(
        None,
        description="Whether a stream reads files again that were rewritten by a change, unchanged rows "
        "included. `skip_change_commits` is the newer way.",
    )
    fail_on_data_loss: bool | None = Field(
        None,
        description="Whether a stream fails when the log no longer has what it needs (default: true).",
        change="continues",
    )
    exclude_regex: str | None = Field(
        None, advanced=True, description="Pass over data files whose path matches this expression."
    )
    schema_tracking_location: DataPath | None = Field(
        None,
        advanced=True,
        description="A folder within the target's checkpoint, for tables with column mapping whose "
        "columns are renamed or dropped while a stream reads.",
    )
    streaming_source_tracking_id: str | None = Field(
        None,
        advanced=True,
        description="Tells two sources of one table apart in one `schema_tracking_location`.",
    )
    allow_source_column_rename: Unblocked | None = Field(
        None,
        advanced=True,
        description="Go on after a renamed column: `always`, or the version that renamed it.",
    )
    allow_source_column_drop: Unblocked | None = Field(
        None,
        advanced=True,
        description="Go on after a dropped column: `always`, or the version that dropped it.",
    )
    allow_source_column_type_change: Unblocked | None = Field(
        None,
        advanced=True,
        description="Go on after a widened column: `always`, or the version that widened it.",
    )
    spark_options: RawOptions = Field(
        {}, advanced=True, description="Further options of Delta's reader, passed on as they are."
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        for first, second in (_STARTS, _BATCH_ONLY[:2], _BATCH_ONLY[2:]):
            if getattr(self, first) is not None and getattr(self, second) is not None:
                raise ValueError(f"give `{first}` or `{second}`, not both")
        for name in _BATCH_ONLY[2:]:
            if getattr(self, name) is not None and not self.read_change_feed:
                raise ValueError(f"`{name}` is for the change feed; add `read_change_feed: true`")
        for name in _BATCH_ONLY[:2]:
            if getattr(self, name) is not None and self.read_change_feed:
                raise ValueError(f"`{name}` can't be used with `read_change_feed`")
        first_version, last_version = self.starting_version, self.ending_version
        if isinstance(first_version, int) and last_version is not None and last_version < first_version:
            raise ValueError("`ending_version` lies before `starting_version`")
        return self


class DeltaSource(NeedsDelta, Source[DeltaSourceOptions]):
    """Read a Delta table, as it is or as it changes.

    A stream reads the whole table and then what is appended. It fails when rows are changed or
    deleted, unless an option says what to do then.

    In visual tools: DeltaTableOperations, Delta.
    """

    semantics = SourceSemantics(
        condition="The table still has the files and the log of what was not read yet (`VACUUM`, "
        "`delta.logRetentionDuration`).",
        lag=frozenset({"versions", "time"}),
    )
    example = {"path": "tables/clicks"}

    def __init__(self, options: DeltaSourceOptions) -> None:
        super().__init__(options)
        if options.starting_version == "latest":
            # Delta keeps the version it began at in memory only.
            condition = f"A first micro-batch was committed. {self.semantics.condition}"
            self.semantics = replace(self.semantics, only_new="starting_version", condition=condition)
        if options.path is None:
            # Where a table of a catalog lies, only Spark knows.
            self.semantics = replace(self.semantics, lag=frozenset())

    def waiting(self, context: "WaitingContext") -> "Waiting | None":
        """The versions of the table that come after what was read."""
        from gem_delta.waiting import versions_waiting

        path = self.options.path
        return None if path is None else versions_waiting(path, context)

    def places(self) -> dict[str, list[str]]:
        """The table."""
        return self.options.places()

    def begins(self) -> str:
        """The version or the time that the options name, else the whole table."""
        options = self.options
        if options.starting_version == "latest":
            return "from what comes after the start"
        if options.starting_version is not None:
            return f"from version {options.starting_version} on"
        if options.starting_timestamp is not None:
            return f"from {options.starting_timestamp} on"
        return "from its beginning"

    def change(self, option: str, before: Any) -> OptionChange | None:  # noqa: ARG002 (whatever it was)
        """The checkpoint knows the table by its own id, and the version up to which it was read."""
        if option in {"starting_version", "starting_timestamp"}:
            return OptionChange(
                "continues",
                "the checkpoint has a version, and it wins: this is read by a new checkpoint only",
            )
        if option in {"path", "table"}:
            return OptionChange(
                "refused",
                "the checkpoint knows the table by its id, and Delta goes on with no other one",
                "Give the source another id; if the same table has only moved, accept it.",
            )
        return None

    def read(self, context: ReadContext) -> "DataFrame":
        """The rows of one version of the table, or of its change feed.

        Raises:
            GemError: GB505 or GB510 when there is no such table, GB206, GB207 or GB312 when the options
                don't make a batch.
        """
        self._refuse(streaming=False)
        return self._load(context)

    def read_stream(self, context: StreamReadContext) -> "DataFrame":
        """The rows of the table, then those that come.

        Raises:
            GemError: GB505 or GB510 when there is no such table, GB312 for options that only a batch has.
        """
        self._refuse(streaming=True)
        return self._load(context)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":  # noqa: ARG002 (a source has none)
        """What only a stream or only a batch knows."""
        if self.streaming is not None:
            yield from self._findings(streaming=self.streaming)

    def connect(self) -> "Iterator[Finding]":
        """Look for the table at a local path; what lies elsewhere is left to Spark."""
        if self.options.is_absent():
            error = self.options.absent()
            yield Finding(error.code, error.message, error.hint, error.option)

    def discover(self) -> "tuple[Column, ...] | None":
        """The columns that the log of a table at a local path says it has."""
        from gem_delta.log import read_metadata

        options = self.options
        local = local_path(options.path) if options.path is not None else None
        # Delta resolves times in the session's time zone; a location has a schema of its own.
        unclear = (options.timestamp_as_of, options.schema_tracking_location, options.spark_options)
        if local is None or any(unclear):
            return None
        found = read_metadata(Path(local) / "_delta_log", options.version_as_of)
        if found is None or not options.read_change_feed:
            return None if found is None else found.columns
        if found.column_mapping and (options.ending_version, options.ending_timestamp) != (None, None):
            return None  # the columns of the version at which it ends
        return found.columns + _CHANGE_COLUMNS

    def for_preview(self) -> Self:
        """The same table from its beginning where only new rows are read, one file a micro-batch."""
        changes: dict[str, object] = {
            "max_files_per_trigger": 1,
            "max_bytes_per_trigger": None,
            # It has to lie within the checkpoint, and a preview has a checkpoint of its own.
            "schema_tracking_location": None,
        }
        if self.options.starting_version == "latest":
            changes["starting_version"] = 0 if self.options.read_change_feed else None
        clone = copy.copy(self)
        clone.options = self.options.model_copy(update=changes)
        return clone

    def for_backfill(self, part: SourcePart) -> PartRead | None:
        """One version of the table: the newest, or the one up to which a stream has read.

        Raises:
            GemError: GB453 when a batch hasn't the rows that the stream has.
        """
        options = self.options
        if options.read_change_feed:
            message = "a stream of the change feed begins with the rows of the table, and a batch doesn't"
            raise GemError("GB453", message, "", "read_change_feed")
        for name in ("starting_version", "starting_timestamp"):
            if getattr(options, name) not in {None, "latest"}:
                message = f"with `{name}` the stream has what changed from there on, a batch the whole table"
                raise GemError("GB453", message, "", name)
        version = _last_version(part.offset) if part.offset is not None else None
        if part.offset is not None and version is None:
            message = "the live run has read a part of a version of the table, and a batch reads whole ones"
            raise GemError("GB453", message, "Try again when it has caught up.")
        changes: dict[str, object] = dict.fromkeys((*_STREAM_ONLY, "starting_version"))
        clone = copy.copy(self)
        clone.streaming = False
        clone.options = options.model_copy(update={**changes, "version_as_of": version})
        clone.options.model_fields_set.difference_update(changes)
        return PartRead(clone, "whole" if version is None else f"up to version {version}")

    def _load(self, context: "ReadContext | StreamReadContext") -> "DataFrame":
        from pyspark.errors import AnalysisException

        options = self.options
        given = options.to_spark()
        try:
            if options.table is not None:
                return context.table(options.table, given)
            return analysed(context.reader.options(**given).format("delta").load(options.path))
        except AnalysisException as error:
            if says_absent(error):
                raise options.absent() from error
            raise

    def _refuse(self, *, streaming: bool) -> None:
        for finding in self._findings(streaming=streaming):
            if finding.severity == "error":
                raise GemError(finding.code, finding.message, finding.hint, finding.option)
        if self.options.is_absent():
            raise self.options.absent()

    def _findings(self, *, streaming: bool) -> "Iterator[Finding]":
        given = [name for name in type(self.options).model_fields if name in self.options.model_fields_set]
        if streaming:
            for name in given:
                if name in _BATCH_ONLY:
                    message = f"`{name}` can't be used for a stream, which follows the table"
                    yield Finding("GB312", message, "Remove it, or read with `mode: batch`.", name)
            return
        for name in given:
            if name in _STREAM_ONLY:
                message = f"`{name}` has no effect: the table is read as a batch"
                yield Finding("GB207", message, "Remove it.", name, "warning")
        starts = [name for name in _STARTS if name in given]
        if self.options.read_change_feed and not starts:
            message = "a batch of the change feed needs `starting_version` or `starting_timestamp`"
            yield Finding("GB206", message, "Write `starting_version: 0` for all of it.", "read_change_feed")
        for name in starts:
            if not self.options.read_change_feed:
                message = f"`{name}` is for streams and for the change feed; Delta would read all rows"
                hint = "Write `version_as_of` for an older state, or `read_change_feed: true`."
                yield Finding("GB207", message, hint, name)
            elif self.options.starting_version == "latest":
                message = "`starting_version: latest` is for streams"
                yield Finding("GB312", message, "Write the number of a version.", name)


def _last_version(offset: Any) -> int | None:
    """The last version that an offset of a stream has all of; None when it is within one.

    It names the version and the file that come next; before a version's first file the index is negative.
    """
    if not isinstance(offset, dict) or offset.get("isStartingVersion") or int(offset.get("index", 0)) >= 0:
        return None
    version = int(offset.get("reservoirVersion", 0)) - 1
    return version if version >= 0 else None
