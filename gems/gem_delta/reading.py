"""The options by which the source `delta` reads a table."""

from typing import Literal, Self

from pydantic import NonNegativeInt, model_validator

from gem_bundle import Column, Field
from gem_bundle.types import ByteSize, DataPath, Timestamp
from gem_delta.connection import DeltaOptions, RawOptions

STREAM_ONLY = (
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
BATCH_ONLY = ("version_as_of", "timestamp_as_of", "ending_version", "ending_timestamp")
STARTS = ("starting_version", "starting_timestamp")

# What the change feed adds (Delta: *Change data feed*).
CHANGE_COLUMNS = (
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
        for first, second in (STARTS, BATCH_ONLY[:2], BATCH_ONLY[2:]):
            if getattr(self, first) is not None and getattr(self, second) is not None:
                raise ValueError(f"give `{first}` or `{second}`, not both")
        for name in BATCH_ONLY[2:]:
            if getattr(self, name) is not None and not self.read_change_feed:
                raise ValueError(f"`{name}` is for the change feed; add `read_change_feed: true`")
        for name in BATCH_ONLY[:2]:
            if getattr(self, name) is not None and self.read_change_feed:
                raise ValueError(f"`{name}` can't be used with `read_change_feed`")
        first_version, last_version = self.starting_version, self.ending_version
        if isinstance(first_version, int) and last_version is not None and last_version < first_version:
            raise ValueError("`ending_version` lies before `starting_version`")
        return self
