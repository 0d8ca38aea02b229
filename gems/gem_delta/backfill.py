"""What a backfill reads of a table whose stream doesn't have all of it: what its commits changed.

Which commits are of a part only the table's history tells, in the session: Delta takes a time in place of a
version too, and then begins without a word at the oldest commit that the log still has.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle import GemError, analysed
from gem_bundle.expressions import backquoted
from gem_bundle.schema import literal
from gem_delta.connection import says_absent
from gem_delta.reading import CHANGE_COLUMNS, STARTS, STREAM_ONLY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from gem_bundle import ReadContext, SourcePart
    from gem_delta.reading import DeltaSourceOptions

_INTO = "Write to another place with `--into`."
_REWRITING = ("skip_change_commits", "ignore_changes")
_TOO_OLD = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Commit(NamedTuple):
    """A commit of a table: its version, and when it was made."""

    version: int
    at: datetime


def changes_of(options: DeltaSourceOptions, part: SourcePart, last: int | None) -> Changes:
    """What changed in a table, of a part.

    Args:
        options: The options of the stream.
        part: The part.
        last: The last version that the stream has read; None where that doesn't matter.

    Raises:
        GemError: GB453 when the feed hasn't the rows that the stream has had, or that can't be told.
    """
    start = next((name for name in STARTS if getattr(options, name) not in {None, "latest"}), None)
    if part.complete:
        _check_begin(options, part)
    rewriting = next((name for name in _REWRITING if getattr(options, name)), None)
    if rewriting is not None and not options.read_change_feed:
        message = f"which rows the stream has with `{rewriting}` and `{start}` can't be told afterwards"
        raise GemError("GB453", message, f"Without `{start}` all rows of the table are read.", rewriting)
    return Changes(options, part, last, start)


def _check_begin(options: DeltaSourceOptions, part: SourcePart) -> None:
    """Refuse where the stream began with rows that the feed hasn't from where it is read."""
    given = next((name for name in STARTS if getattr(options, name) is not None), None)
    if given is None:
        message = "a stream of the change feed begins with the rows of the table, which aren't in the feed"
        raise GemError("GB453", message, _INTO, "read_change_feed")
    if part.began is None:
        message = f"no record tells whether the stream began with this `{given}`"
        raise GemError("GB453", message, _INTO, given)
    for name in STARTS:
        before = part.began.get(name)
        if before != getattr(options, name):
            said = "without it" if before is None else f"with `{name}: {before}`"
            raise GemError(
                "GB453", f"the stream began {said}, and what it had then would be gone", _INTO, name
            )


@dataclass(frozen=True, slots=True)
class Changes:
    """What commits of a table changed.

    Args:
        options: The options of the stream.
        part: The time that the commits are of.
        last: The last version that the stream has read; None where that doesn't matter.
        start: The option that says where the stream begins; None for none.
    """

    options: DeltaSourceOptions
    part: SourcePart
    last: int | None = None
    start: str | None = None

    def __str__(self) -> str:
        said = [f"from {self.start} {getattr(self.options, self.start)}"] if self.start is not None else []
        said += [f"up to version {self.last}"] if self.last is not None else []
        since, until = self.part.since, self.part.until
        said += [f"of commits from {since} to {until}"] if since is not None else []
        return ", ".join(["the change feed", *said])

    def read(self, context: ReadContext) -> DataFrame:
        """The rows of the change feed; without `read_change_feed` those that were added.

        Raises:
            GemError: GB505 or GB510 when there is no such table, GB453 when it hasn't all of the changes.
        """
        if self.options.is_absent():
            raise self.options.absent()
        commits = self._commits(context)
        first, last = self._versions(context, commits)
        return self._changes(context, first, last) if first <= last else self._none(context)

    def _commits(self, context: ReadContext) -> list[Commit]:
        """The commits that the table's log still has, the oldest first."""
        from pyspark.errors import AnalysisException

        try:
            history = analysed(context.spark.sql(f"describe history {self.options.sql_name}"))
        except AnalysisException as error:
            if says_absent(error):
                raise self.options.absent() from error
            raise
        found = history.selectExpr("version", "unix_micros(timestamp)").collect()
        return sorted(Commit(version, _EPOCH + timedelta(microseconds=at)) for version, at in found)

    def _versions(self, context: ReadContext, commits: Sequence[Commit]) -> tuple[int, int]:
        """The first and the last version of the part; when it has none, the last lies before the first."""
        oldest, newest, part = commits[0], commits[-1], self.part
        first = self._start(context, commits)
        if first < oldest.version and (part.since is None or oldest.at >= part.since):
            message = (
                f"the log of the table begins with version {oldest.version}, of {oldest.at}, and commits "
                "before it may be needed"
            )
            hint = "With `--margin` only the commits of the interval have to be there."
            raise GemError("GB453", message, hint, self._option)
        if part.since is not None:
            later = (commit.version for commit in commits if commit.at >= part.since)
            first = max(first, next(later, newest.version + 1))
        last = newest.version if self.last is None else min(self.last, newest.version)
        if part.until is not None:
            before = [commit.version for commit in commits if commit.at < part.until]
            last = min(last, max(before, default=-1))
        return first, last

    def _start(self, context: ReadContext, commits: Sequence[Commit]) -> int:
        """The version at which the stream was told to begin."""
        options = self.options
        if options.starting_timestamp is not None:
            text = f"select unix_micros(cast({literal(options.starting_timestamp)} as timestamp))"
            (told,) = context.spark.sql(text).collect()
            later = [c.version for c in commits if c.at >= _EPOCH + timedelta(microseconds=told[0])]
            # When all that are there are later, some that aren't may be so too.
            return 0 if len(later) == len(commits) else min(later, default=commits[-1].version + 1)
        return options.starting_version if isinstance(options.starting_version, int) else 0

    @property
    def _option(self) -> str:
        return self.start or "read_change_feed"

    def _changes(self, context: ReadContext, first: int, last: int) -> DataFrame:
        from pyspark.errors import AnalysisException

        # What only a stream knows, and where it begins, a batch isn't given.
        options = self.options.model_copy(update=dict.fromkeys((*STREAM_ONLY, *STARTS)))
        options.model_fields_set.difference_update((*STREAM_ONLY, *STARTS))
        given = options.to_spark()
        given |= {"readChangeFeed": "true", "startingVersion": str(first), "endingVersion": str(last)}
        try:
            rows = self._rows(context, given)
            rows.isEmpty()  # Delta looks for the feed only when rows are asked for
        except AnalysisException as error:
            condition = error.getCondition()
            if condition == _TOO_OLD:
                message = (
                    f"version {first} of the table is older than its `delta.deletedFileRetentionDuration`, "
                    "and Delta doesn't read the changes of such ones"
                )
                hint = "With `--margin` only the commits of the interval are read. Or make that longer."
            elif condition == "DELTA_MISSING_CHANGE_DATA":
                message = (
                    f"the table doesn't have its change feed for all of the versions {first} to {last}, and "
                    "without it what they added can't be told"
                )
                hint = "With `--margin` only commits of the interval need it (`delta.enableChangeDataFeed`)."
            else:
                raise
            raise GemError("GB453", message, hint, self._option) from error
        if self.options.read_change_feed:
            return rows
        return rows.where("_change_type = 'insert'").drop(*(column.name for column in CHANGE_COLUMNS))

    def _none(self, context: ReadContext) -> DataFrame:
        rows = self._rows(context, {}).where("false")
        if not self.options.read_change_feed:
            return rows
        added = (f"cast(null as {c.type}) as {backquoted(c.name)}" for c in CHANGE_COLUMNS)
        return rows.selectExpr("*", *added)

    def _rows(self, context: ReadContext, given: dict[str, str]) -> DataFrame:
        if self.options.table is not None:
            return context.table(self.options.table, given)
        return analysed(context.reader.options(**given).format("delta").load(self.options.path))
