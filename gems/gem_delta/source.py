"""The source `delta`: the rows of a Delta table, or what changed in it."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gem_bundle import (
    Column,
    Facts,
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
from gem_bundle.types import local_path
from gem_delta.connection import NeedsDelta, says_absent, says_no_version
from gem_delta.reading import BATCH_ONLY, CHANGE_COLUMNS, STARTS, STREAM_ONLY, DeltaSourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from gem_bundle import Waiting, WaitingContext
    from gem_delta.backfill import Changes


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
        self._of_stream = False  # what is read is up to where a stream has read
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
                by_id=True,
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
        return found.columns + CHANGE_COLUMNS

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

        Where the stream doesn't have all rows of the table: what its commits changed, by the change feed.

        Raises:
            GemError: GB453 when a batch hasn't the rows that the stream has.
        """
        options = self.options
        version = _last_version(part.offset) if part.offset is not None else None
        if part.offset is not None and version is None:
            message = "the live run has read a part of a version of the table, and a batch reads whole ones"
            raise GemError("GB453", message, "Try again when it has caught up.")
        if options.read_change_feed or any(getattr(options, n) not in {None, "latest"} for n in STARTS):
            from gem_delta.backfill import changes_of

            changed = changes_of(options, part, version)
            return PartRead(_Changed(options, changed), str(changed))
        changes: dict[str, object] = dict.fromkeys((*STREAM_ONLY, "starting_version"))
        clone = copy.copy(self)
        clone.streaming = False
        clone._of_stream = True
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
            raise self._no_version(error) or error from error

    def _no_version(self, error: Exception) -> GemError | None:
        """What to say when the table hasn't the version; None when Delta says something else."""
        options, why = self.options, says_no_version(error)
        option = next((name for name in BATCH_ONLY[:2] if getattr(options, name) is not None), None)
        if why is None or option is None:
            return None
        what = f"as it was at {options.timestamp_as_of}"
        if options.version_as_of is not None:
            what = f"in version {options.version_as_of}"
        where = options.table or options.path
        if self._of_stream:
            message = f"the live run has read the table `{where}` {what}, which can't be read any more: {why}"
            hint = "Run the pipeline, so that it catches up, and then compute the time anew."
            return GemError("GB453", message, hint)
        hint = "Name another one, or none: without it the table is read as it is."
        return GemError("GB453", f"the table `{where}` can't be read {what}: {why}", hint, option)

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
                if name in BATCH_ONLY:
                    message = f"`{name}` can't be used for a stream, which follows the table"
                    yield Finding("GB312", message, "Remove it, or read with `mode: batch`.", name)
            return
        for name in given:
            if name in STREAM_ONLY:
                message = f"`{name}` has no effect: the table is read as a batch"
                yield Finding("GB207", message, "Remove it.", name, "warning")
        starts = [name for name in STARTS if name in given]
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


class _Changed(DeltaSource):
    """What commits of the table changed, read as a batch.

    Args:
        options: The options of the source.
        changes: Which commits.
    """

    def __init__(self, options: DeltaSourceOptions, changes: "Changes") -> None:
        super().__init__(options)
        self.streaming = False
        self._changes = changes

    def read(self, context: ReadContext) -> "DataFrame":
        return self._changes.read(context)


def _last_version(offset: Any) -> int | None:
    """The last version that an offset of a stream has all of; None when it is within one.

    It names the version and the file that come next; before a version's first file the index is negative.
    """
    if not isinstance(offset, dict) or offset.get("isStartingVersion") or int(offset.get("index", 0)) >= 0:
        return None
    version = int(offset.get("reservoirVersion", 0)) - 1
    return version if version >= 0 else None
