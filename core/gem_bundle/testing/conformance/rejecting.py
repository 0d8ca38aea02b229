"""The tests of transforms that reject: each row is let through or rejected, also one nobody thought of."""

from __future__ import annotations

import json
import secrets
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest

from gem_bundle.rejected import rejected_rows, restored_rows
from gem_bundle.schema import fields_of, quoted
from gem_bundle.testing.conformance.dividing import (
    ANYBODY,
    NEVER_LATE,
    NUMBER,
    Dividing,
    divided,
    numbers_of,
    outputs,
)
from gem_bundle.testing.conformance.inference import differences
from gem_bundle.testing.conformance.inputs import Folder, facts_of
from gem_bundle.testing.conformance.streams import (
    all_rows,
    difference,
    drained,
    forget_last_commit,
    rows_of,
    run_to_the_end,
)
from gem_bundle.testing.conformance.suite import GemConformance, applies, costly, fail_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from gem_bundle.gem import Gem, Transform
    from gem_bundle.schema import StructField
    from gem_bundle.testing.conformance.inputs import Given
    from gem_bundle.testing.conformance.streams import Batches

_DRAWN = 60
_CHANGED = 0.4
_TEXTS = ("", " ", "0", "null", "\u00e9\U0001f600", "[" * 20, "x" * 300)
_NUMBERS = (0, -1, 1, 127, 2**31 - 1, -(2**31))


def _rejects(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001 (the shape of a condition)
    return cast("Transform", gem).rejects()


def _rejects_in_streams(suite: type[GemConformance], gem: Gem) -> bool:
    return _rejects(suite, gem) and not cast("Transform", gem).compares_rows()


def _rejects_of_one_stream(suite: type[GemConformance], gem: Gem) -> bool:
    _, *others = cast("type[RejectingTests]", suite).inputs.values()
    return _rejects(suite, gem) and all(given.static for given in others)


def _remembers(suite: type[GemConformance], gem: Gem) -> bool:
    return _rejects(suite, gem) and cast("Transform", gem).remembers() > 0


class RejectingTests(GemConformance):
    """The tests of a transform with an output `rejected`; the first of its inputs is what it judges.

    Attributes:
        passed_over: A condition, as Spark reads it, that is true of the rows of the first input that are in
            none of the outputs on purpose; None when there are none.
    """

    inputs: ClassVar[Mapping[str, Given]]
    passed_over: ClassVar[str | None] = None

    @pytest.mark.spark
    @applies(_rejects)
    def test_keeps_or_rejects_each_row(self) -> None:
        """Each row is let through or rejected, and `infer_rejected` says what Spark's analyser says."""
        gem = self.live()
        tables = self.tables()  # type: ignore[attr-defined]
        problems = self._divided(gem, tables)
        judged = [(tables, "of static inputs")]
        if not gem.compares_rows():  # which have tables only
            judged.append((self.streams(marked=True), "of streams"))  # type: ignore[attr-defined]
        for inputs, how in judged:
            df = rejected_rows(gem.reject(*inputs), ANYBODY)
            problems += differences(gem.infer_rejected(*map(facts_of, inputs)), df, how=f"rejected {how}")
        fail_for(problems)

    @pytest.mark.spark
    @applies(_rejects)
    def test_keeps_or_rejects_rows_it_never_saw(self) -> None:
        """So are rows that are drawn: each alone, as it came in, and wherever it lies."""
        gem = self.live()
        seed, drawn = self._drawn()
        tables = [drawn.table(self.spark), *self.tables()[1:]]  # type: ignore[attr-defined]
        problems = self._divided(gem, tables)
        if gem.compares_rows():
            moved = [tables[0].repartition(3), *tables[1:]]
            other = difference(_rejected(gem, moved), _rejected(gem, tables))
            problems += (
                [f"with the same rows in other partitions, of those rejected {other}"] if other else []
            )
        else:
            problems += _judged_apart(gem, tables)
        fail_for([f"{problem} (rows drawn by the seed {seed})" for problem in problems])

    @pytest.mark.spark
    @applies(_rejects_in_streams)
    def test_keeps_or_rejects_rows_that_come_again(self) -> None:
        """So are rows of a micro-batch that comes again, since a run died before that was committed."""
        gem = self.live()
        seed, drawn = self._drawn()
        inputs = [drawn.stream(self.spark, "rows"), *self.streams()[1:]]  # type: ignore[attr-defined]
        kept, rejected = gem.apply(*inputs), rejected_rows(gem.reject(*inputs), ANYBODY)
        problems, rows = [], 0
        for df, what in ((kept, "let through"), (rejected, "rejected")):
            checkpoint = self.folder.with_name(f"checkpoint_{what.partition(' ')[0]}")
            before = drained(df, checkpoint)
            last = forget_last_commit(checkpoint)
            again = drained(df, checkpoint)
            other = difference(_rows_in(again, last), _rows_in(before, last))
            problems += [f"when a micro-batch comes again, of the rows {what} {other}"] if other else []
            rows += len(all_rows(before))
        whole = self._judged(drawn.table(self.spark)).count()
        if len(inputs) == 1 and rows != whole:
            problems.append(f"of a stream of {whole} rows {rows} are let through or rejected")
        fail_for([f"{problem} (rows drawn by the seed {seed})" for problem in problems])

    @pytest.mark.spark
    @applies(_remembers)
    def test_keeps_or_rejects_rows_by_those_it_remembers(self) -> None:
        """So are rows of a micro-batch, by what is remembered of those before; also when it comes again."""
        gem = self.live()
        given = next(iter(self.inputs.values()))
        assert given.event_time is not None, "what is remembered is so by event time"
        folder = Folder(self.folder.with_name("remembered"), given.schema)
        for _ in range(2):
            folder.add(given.rows)
        rows = folder.stream(self.spark, "rows").withWatermark(given.event_time[0], NEVER_LATE)
        others = self.streams()[1:]  # type: ignore[attr-defined]
        stream, checkpoint = gem.remember(rows, *others), self.folder.with_name("checkpoint_remembered")
        before = drained(stream, checkpoint)
        forget_last_commit(checkpoint)
        problems, found, most = [], [], gem.remembers()
        for _, batch in (*before, *drained(stream, checkpoint)):
            if len(batch) > most * len(given.rows):
                problems.append(f"`remember` makes more rows of each than `remembers` says, {most}")
            recalled = gem.recall(self.spark.createDataFrame(batch, stream.schema))
            problems += self._divided(gem, [recalled, *others], rows=len(given.rows))
            found.append(_rejected(gem, [recalled, *others]))
        if len(found) != 3:
            problems.append(f"two micro-batches, of which one came again, are {len(found)}")
        elif other := difference(found[2], found[1]):
            problems.append(f"when a micro-batch comes again, of the rows rejected {other}")
        fail_for(problems)

    @pytest.mark.spark
    @costly
    @applies(_rejects_of_one_stream)
    def test_keeps_or_rejects_each_row_of_a_killed_run(self) -> None:
        """So are rows of a run that is killed between its two outputs, which goes on with the second.

        It is a process of its own, with the options of `provide` and a Spark that has what the gem asks for.
        What was written of a micro-batch before it died isn't written again, as it is in a group of targets
        that know a micro-batch: then a gem has to divide the rows as it did the first time.
        """
        from gem_bundle.testing.conformance.killing import kill_while_dividing

        gem = self.live()
        seed, rows = self._draw()
        first, *others = self.inputs.items()
        given = Folder(self.folder.with_name("numbered"), f"{first[1].schema}, {NUMBER} int")
        for number, part in enumerate(_parts(rows, 5)):
            given.add({**row, NUMBER: len(part) * number + place} for place, row in enumerate(part))
        folders = self._folders()  # type: ignore[attr-defined]  # the class of transforms has it
        tables = [(str(folders[name].path), each.schema) for name, each in others]
        place = self.folder.with_name("divided")
        event_time = None if first[1].event_time is None else first[1].event_time[0]
        dividing = Dividing(gem, event_time, tables, str(place))
        kill_while_dividing(dividing, given, self.checkpoint, self.folder, self.spark)
        run_to_the_end(dividing.writer(given.stream(self.spark, "given")), self.checkpoint)
        wanted = {row[NUMBER] for row in self._judged(given.table(self.spark)).select(NUMBER).collect()}
        problems = _not_divided(wanted, *divided(place))
        fail_for(
            [
                f"after a run that was killed, {problem} (rows drawn by the seed {seed})"
                for problem in problems
            ]
        )

    def _divided(self, gem: Any, tables: Sequence[DataFrame], rows: int | None = None) -> list[str]:
        """What is wrong with how rows are divided."""
        if len(tables) > 1:
            return self._told_apart(gem, tables, rows)
        kept = sum(df.count() for df in outputs(gem.apply(*tables)))
        rejected = rejected_rows(gem.reject(*tables), ANYBODY).count()
        rows = self._judged(tables[0]).count() if rows is None else rows
        if kept + rejected == rows:
            return []
        return [f"of {rows} rows {kept} are let through, and {rejected} are rejected"]

    def _told_apart(self, gem: Any, tables: Sequence[DataFrame], rows: int | None) -> list[str]:
        """What is wrong where several inputs may make several rows of one: each is numbered beforehand."""
        from pyspark.sql.types import IntegerType, StructField, StructType

        first, *others = tables
        numbered = self.spark.createDataFrame(
            [(*row, number) for number, row in enumerate(first.collect())],
            StructType([*first.schema, StructField(NUMBER, IntegerType())]),
        )
        all_ = {row[NUMBER] for row in self._judged(numbered).select(NUMBER).collect()}
        if rows is not None and len(all_) != rows:
            return [f"of {rows} rows {len(all_)} are there when they are judged"]
        through = outputs(gem.apply(numbered, *others))
        refused = rejected_rows(gem.reject(numbered, *others), ANYBODY)
        kept = [row[NUMBER] for df in map(numbers_of, through) for row in df.collect()]
        rejected = [json.loads(row.row)[NUMBER] for row in refused.select("row").collect()]
        return _not_divided(all_, kept, rejected)

    def _judged(self, df: DataFrame) -> DataFrame:
        """The rows that have to be in one of the outputs."""
        return df if self.passed_over is None else df.where(f"not coalesce(({self.passed_over}), false)")

    def _drawn(self) -> tuple[int, Folder]:
        """Two files of rows like those that the gem is given and unlike them, and what they are drawn by."""
        seed, drawn = self._draw()
        folder = Folder(self.folder.with_name("drawn"), next(iter(self.inputs.values())).schema)
        for part in _parts(drawn, 2):
            folder.add(part)
        return seed, folder

    def _draw(self) -> tuple[int, list[dict[str, Any]]]:
        seed = getattr(self.request.config.option, "seed", None)
        seed = secrets.randbelow(10**8) if seed is None else seed
        given = next(iter(self.inputs.values()))
        return seed, list(draw(given.rows, fields_of(given.schema) or (), Random(seed)))  # noqa: S311 (no secret)


def _parts(rows: Sequence[dict[str, Any]], count: int) -> Iterator[Sequence[dict[str, Any]]]:
    """Rows in as many equal parts."""
    size = len(rows) // count
    return (rows[size * number : size * (number + 1)] for number in range(count))


def _not_divided(wanted: set[int], kept: Sequence[int | None], rejected: Sequence[int | None]) -> list[str]:
    """What is wrong with the numbers of rows that are let through, None where lost, and of the others."""
    known, problems = set(kept), []
    if None in known:  # they can only be counted then, and one may have become several
        lost = len(wanted) - len(kept) - len(rejected)
        if lost > 0:
            problems.append(f"of {len(wanted)} rows at least {lost} are neither let through nor rejected")
    else:
        if lost := len(wanted - known.union(rejected)):
            problems.append(f"of {len(wanted)} rows {lost} are neither let through nor rejected")
        if both := len(known.intersection(rejected)):
            problems.append(f"of {len(wanted)} rows {both} are let through, and rejected too")
    if len(rejected) > len(set(rejected)):
        problems.append(f"of {len(wanted)} rows some are rejected twice")
    return problems


def draw(
    rows: Sequence[Mapping[str, Any]], fields: Sequence[StructField], chance: Random
) -> Iterator[dict[str, Any]]:
    """Rows whose values are those of some rows, changed here and there: cut, mixed, out of range, or gone.

    Args:
        rows: The rows.
        fields: Their columns.
        chance: What they are drawn by.
    """
    for _ in range(_DRAWN):
        row = dict(chance.choice(rows))
        for field in fields:
            if chance.random() < _CHANGED:
                value = chance.choice(rows).get(field.name)
                row[field.name] = _changed(value, field.type.name, chance)
        yield row


def _changed(value: Any, kind: str, chance: Random) -> Any:
    if chance.random() < 0.2:
        return None
    if kind == "string":
        text = value if isinstance(value, str) else ""
        at = chance.randrange(len(text) + 1)
        return chance.choice((text, text[:at], text[at:], text + text, *_TEXTS))
    if kind == "binary":
        found = value if isinstance(value, bytes) else b""
        at = chance.randrange(len(found) + 1)
        return chance.choice((found, found[:at], found[at:], found + found, b"", b"\xff\xfe", b"{}"))
    if kind in {"int", "bigint", "float", "double"}:
        return chance.choice((value, *_NUMBERS))
    return value


def _judged_apart(gem: Any, tables: Sequence[DataFrame]) -> list[str]:
    """What is wrong when those that are rejected and the others come without each other."""
    rows, others = tables[0], tables[1:]
    rejected = _restored(rejected_rows(gem.reject(*tables), ANYBODY), rows)
    problems = []
    strange = rejected.exceptAll(rows).count()
    if strange:
        problems.append(f"{strange} of the rows that are rejected don't come back as they came in")
    through = sum(df.count() for df in outputs(gem.apply(rejected, *others)))
    if through:
        problems.append(f"of the rows that are rejected {through} are let through when they come alone")
    kept = rows.exceptAll(rejected)
    refused = rejected_rows(gem.reject(kept, *others), ANYBODY).count()
    if refused:
        problems.append(f"of the rows that aren't rejected {refused} are when they come alone")
    return problems


def _restored(rejected: DataFrame, rows: DataFrame) -> DataFrame:
    schemas = [row.row_schema for row in rejected.select("row_schema").distinct().collect()]
    if not schemas:
        return rows.where("false")
    # A gem may hand the columns on in another order: a join puts those first by which it joins.
    return restored_rows(rejected, schemas[0]).select(*map(quoted, rows.columns))


def _rejected(gem: Any, tables: Sequence[DataFrame]) -> list[dict[str, Any]]:
    return rows_of(rejected_rows(gem.reject(*tables), ANYBODY).select("row", "reasons"))


def _rows_in(batches: Batches, number: int) -> list[dict[str, Any]]:
    return [row for batch, rows in batches if batch == number for row in rows]
