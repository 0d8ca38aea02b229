"""The rows of declared tests: written in the test, in a CSV or JSON file beside it, or made up."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from gem_bundle.diagnostics import Diagnostic, Place, suggest
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.problems import FILE_CODES, problems
from gem_bundle.testing.rows.generate import ColumnShape, generate
from gem_bundle.testing.values import MisfitError, Reader, TextRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gem_bundle.pipeline.document import Document, Path
    from gem_bundle.schema import StructField
    from gem_bundle.testing.declared.load import Data, DeclaredTest, Delivery
    from gem_bundle.testing.declared.model import GenerateShape

_LINES = frozenset({".jsonl", ".ndjson"})
_MOST_MISFITS = 20


class _FileRow(NamedTuple):
    """A row of a data file, and the line where it begins; 0 where that isn't known."""

    line: int
    row: Any


def read_rows(
    data: Data, fields: Sequence[StructField], test: DeclaredTest, time_zone: str = "UTC"
) -> list[tuple[Any, ...]]:
    """The rows that a test gives to a node, in the form of `gem_bundle.testing.values`.

    Args:
        data: Where they come from.
        fields: Their columns.
        test: The test.
        time_zone: The session's.

    Raises:
        PipelineError: GB703 when a file can't be read, GB704 for rows that don't fit the columns.
    """
    shape = data.shape
    if shape.generate is not None:
        return _made_up(shape.generate, fields, test.document, data.path, time_zone)
    if shape.file is None:
        return _written(shape.rows or (), fields, test.document, data.path, time_zone)
    file, rows = _file_rows(shape.file, test, data.path)
    reader = Reader(time_zone)
    found, misfits = [], []
    for line, row in rows:
        try:
            found.append(reader.row(row, fields))
        except MisfitError as error:
            misfits.append(_misfit(error, Place(file, line)))
    _raise_any(misfits)
    return found


def expected_rows(delivery: Delivery, test: DeclaredTest) -> list[Any] | None:
    """The rows that are expected of a target, as they are written; None when none are.

    Args:
        delivery: What is expected.
        test: The test.

    Raises:
        PipelineError: GB703 when their file can't be read.
    """
    if delivery.shape.file is None:
        return delivery.shape.rows
    _, rows = _file_rows(delivery.shape.file, test, delivery.path)
    return [row for _, row in rows]


def _written(
    rows: Iterable[Any], fields: Sequence[StructField], document: Document, path: Path, time_zone: str
) -> list[tuple[Any, ...]]:
    """Rows that stand in the test file."""
    reader = Reader(time_zone)
    names = [field.name for field in fields]
    found, misfits = [], []
    for index, row in enumerate(rows):
        try:
            found.append(reader.row(row, fields))
        except MisfitError as error:
            steps = error.path
            if isinstance(row, list) and steps:  # whose values have no names
                steps = (names.index(str(steps[0])), *steps[1:])
            misfits.append(_misfit(error, document.place((*path, index, *steps))))
    _raise_any(misfits)
    return found


def _misfit(error: MisfitError, place: Place) -> Diagnostic:
    return Diagnostic("GB704", "error", str(error), place=place)


def _raise_any(misfits: list[Diagnostic]) -> None:
    if misfits:
        raise PipelineError(misfits[:_MOST_MISFITS])


def _made_up(
    shape: GenerateShape, fields: Sequence[StructField], document: Document, path: Path, time_zone: str
) -> list[tuple[Any, ...]]:
    """Rows of the generator."""
    path = (*path, "generate", "columns")
    columns: dict[str, ColumnShape] = {}
    found: list[Diagnostic] = []
    for name, values in shape.columns.items():
        try:
            columns[name] = ColumnShape.model_validate(values)
        except ValidationError as error:
            found += (
                Diagnostic(
                    FILE_CODES[problem.kind],
                    "error",
                    f"`{name}`: {problem.message}",
                    path=(*path, name, *problem.path),
                    place=problem.place(document, (*path, name, *problem.path)),
                    hint=problem.hint,
                )
                for problem in problems(error, values, ColumnShape)
                if problem.kind != "ignored"
            )
    _raise_any(found)
    try:
        return generate(fields, shape.rows, shape.seed, columns, time_zone)
    except MisfitError as error:
        raise PipelineError([_misfit(error, document.place((*path, *error.path[:1]), key=True))]) from None


def _file_rows(name: str, test: DeclaredTest, path: Path) -> tuple[str, list[_FileRow]]:
    """The name and the rows of a data file."""
    file = test.folder / name
    place = test.document.place((*path, "file"))

    def unreadable(reason: str, hint: str = "", where: Place = place) -> PipelineError:
        return PipelineError([Diagnostic("GB703", "error", reason, place=where, hint=hint)])

    shown = str(FilePath(test.file).parent / name)
    try:
        if file.suffix == ".csv":
            with file.open(encoding="utf-8-sig", newline="") as opened:
                return shown, list(_csv_rows(opened))
        if file.suffix == ".json" or file.suffix in _LINES:
            text = file.read_text(encoding="utf-8-sig")
            return shown, list(_json_rows(text, lines=file.suffix in _LINES))
    except OSError as error:
        hint = _near(file)
        raise unreadable(f"the data file `{name}` can't be read: {error.strerror}", hint) from None
    except UnicodeDecodeError:
        raise unreadable(f"the data file `{name}` isn't UTF-8 text", "Save it as UTF-8.") from None
    except _BrokenFileError as error:
        raise unreadable(error.reason, where=Place(shown, error.line)) from None
    raise unreadable(f"`{name}` is no CSV or JSON file", "Its name must end in .csv, .json or .jsonl.")


class _BrokenFileError(Exception):
    """A data file that isn't what its name says."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line


def _near(file: FilePath) -> str:
    try:
        names = [entry.name for entry in file.parent.iterdir() if entry.is_file()]
    except OSError:
        return "Its path is relative to the test file."
    return suggest(file.name, names, what="files there")


def _csv_rows(opened: Iterable[str]) -> Iterator[_FileRow]:
    """The rows of a CSV file with a header; an empty value is null."""
    reader = csv.reader(opened, strict=True)
    line = 1
    try:
        header = next(reader, None)
        if header is None:
            raise _BrokenFileError("the file is empty: its first line must name the columns", 1)
        line = reader.line_num + 1
        for values in reader:
            if values:
                if len(values) != len(header):
                    message = f"the row has {len(values)} values, and there are {len(header)} columns"
                    raise _BrokenFileError(message, line)
                yield _FileRow(line, TextRow(zip(header, (value or None for value in values), strict=True)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise _BrokenFileError(f"this isn't CSV: {error}", line) from None


def _json_rows(text: str, *, lines: bool) -> Iterator[_FileRow]:
    """The rows of a JSON file: a list, or one row a line."""
    if not lines and text.lstrip().startswith("["):
        for row in _parsed(text, 1):
            yield _FileRow(0, row)
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield _FileRow(number, _parsed(line, number))


def _parsed(text: str, line: int) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise _BrokenFileError(f"this isn't JSON: {error.msg}", line + error.lineno - 1) from None
