"""One gem of each kind that does everything right: what the wrong ones differ from."""

# ruff: noqa: RUF012, TC001, TC002 (class variables by `Gem`; pydantic needs the types of options)

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from uuid import uuid4

from pydantic import SecretStr

from gem_bundle import (
    Column,
    Facts,
    Field,
    Finding,
    Operator,
    Options,
    ReadContext,
    Source,
    SourceSemantics,
    StreamReadContext,
    Target,
    TargetSemantics,
    Transform,
    WriteContext,
)
from gem_bundle.testing.conformance import SourceConformance, TargetConformance, TransformConformance
from gem_bundle.types import DataPath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

COLUMNS = "id bigint, name string"


class FolderOptions(Options):
    """Where the rows lie."""

    folder: DataPath = Field(passed=False, description="The folder of the rows.")
    token: SecretStr | None = Field(None, passed=False, description="What opens the folder.")

    def place(self) -> Path:
        """The folder, opened."""
        assert self.token is None or self.token.get_secret_value()
        return Path(self.folder)

    def missing(self) -> Iterator[Finding]:
        """What to say when the folder isn't there."""
        if not self.place().is_dir():
            yield Finding("GB505", f"nothing is at `{self.folder}`", "Create it.", "folder")


class Drawer(Source[FolderOptions]):
    """Read the rows that lie in a folder."""

    semantics = SourceSemantics()
    example = {"folder": "drawer"}

    def read(self, context: ReadContext) -> DataFrame:
        return context.reader.schema(COLUMNS).json(str(self.options.place()))

    def read_stream(self, context: StreamReadContext) -> DataFrame:
        return context.reader.schema(COLUMNS).json(str(self.options.place()))

    def infer(self) -> Facts:
        return Facts(columns=(Column("id", "bigint"), Column("name", "string")))

    def connect(self) -> Iterator[Finding]:
        yield from self.options.missing()


class FlagOptions(Options):
    """What is flagged."""

    name: str = Field("flag", description="The name of the column that is added.")


FlagT = TypeVar("FlagT", bound=FlagOptions)


class Flagging(Transform[FlagT]):
    """Say of each row whether its number is even."""

    example = {"name": "even"}

    def apply(self, *inputs: DataFrame) -> DataFrame:
        from pyspark.sql.functions import col

        return inputs[0].withColumn(self.options.name, col("id") % 2 == 0)

    def infer(self, *inputs: Facts) -> Facts:
        (facts,) = inputs
        if facts.columns is None:
            return facts
        return facts.with_columns([*facts.columns, Column(self.options.name, "boolean")])


class Flag(Flagging[FlagOptions]):
    """Say of each row whether its number is even."""


class FlagOfStreams(Flag):
    """Say of each row of a stream, once, whether its number is even."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        return super().apply(*inputs).dropDuplicatesWithinWatermark(["id"])

    def infer(self, *inputs: Facts) -> Facts:
        return super().infer(*inputs).after(Operator("unknown"))

    def check(self, *inputs: Facts) -> Iterator[Finding]:
        if inputs[0].streaming is False:
            yield Finding("GB205", "static rows have no watermark", "Read them as a stream.", "name")


class Filing(Target[FolderOptions]):
    """Put the rows of each micro-batch into a file that has its number."""

    semantics = TargetSemantics(delivery="exactly_once", condition="Nobody else writes into the folder.")
    example = {"folder": "drawer"}

    def write(self, df: DataFrame, context: WriteContext) -> None:
        self._file(df, uuid4().hex, context)

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:
        self._file(df, str(batch_id), context)

    def connect(self) -> Iterator[Finding]:
        yield from self.options.missing()

    def _file(self, df: DataFrame, name: str, context: WriteContext) -> None:
        rows = [row.asDict() for row in df.collect()]
        if context.output_mode == "complete":
            for old in self.options.place().iterdir():
                old.unlink()
        self.send(rows, self.options.place() / name)

    def send(self, rows: list[dict[str, Any]], file: Path) -> None:
        """Write rows into a file."""
        file.write_text(json.dumps(rows), encoding="utf-8")


class Kept:
    """What the classes of all wrong gems say: which tests must catch the gem, and no other does."""

    caught_by: ClassVar[set[str]] = set()


NOT_INSTALLED = {"test_is_registered": "no plugin registers it, it is defined here"}


class SourceSuite(Kept, SourceConformance):
    gem = Drawer
    unreachable = {"folder": "nowhere"}
    waive = NOT_INSTALLED

    def provide(self) -> Mapping[str, Any]:
        return {**self.sample(), "folder": "."}

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        rows = [{"id": 10 * number + n, "name": f"row {n}"} for n in range(3)]
        hidden = self.folder / f".{number}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        hidden.rename(self.folder / f"{number}.json")
        return rows


class TransformSuite(Kept, TransformConformance):
    gem: ClassVar[type[Transform[Any]]] = Flag
    expected = [{"id": 1, "flag": False}, {"id": 2, "flag": True}, {"id": 3, "flag": False}, {"id": 4, "flag": True}]  # fmt: skip
    options = {"name": "flag"}
    waive = NOT_INSTALLED


class TargetSuite(Kept, TargetConformance):
    gem = Filing
    unreachable = {"folder": "nowhere"}
    waive = {
        **NOT_INSTALLED,
        "test_a_killed_run_leaves_every_row_once": "the wrong target that only this finds is killed, and the "
        "built-in ones are, which takes a Spark each",
    }

    def provide(self) -> Mapping[str, Any]:
        return {**self.sample(), "folder": "."}

    def written(self) -> Sequence[Mapping[str, Any]]:
        return [row for file in self.folder.iterdir() for row in json.loads(file.read_text())]


class TestRightSource(SourceSuite):
    gem = Drawer


class TestRightTransform(TransformSuite):
    gem = Flag


class TestRightTransformOfStreams(TransformSuite):
    gem = FlagOfStreams


class TestRightTarget(TargetSuite):
    gem = Filing
