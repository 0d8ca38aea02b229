"""``--update``: the rows that came become the rows that are expected, and nothing else changes."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gem_bundle.schema import quoted
from gem_bundle.testing.declared.data import expected_rows
from gem_bundle.testing.declared.edit import CannotEditError, Editor, Entry
from gem_bundle.testing.rows.matching import Table
from gem_bundle.testing.rows.notation import flow
from gem_bundle.testing.running.outcome import is_output
from gem_bundle.testing.values import Shower

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path as FilePath

    from gem_bundle.pipeline.document import Path
    from gem_bundle.schema import StructField
    from gem_bundle.testing.declared.load import DeclaredStep, DeclaredTest, Delivery, TestFile
    from gem_bundle.testing.rows.matching import Pair
    from gem_bundle.testing.running.outcome import Captured, StepOutcome, TestOutcome

_SAID = ("reasons", "row")


@dataclass
class Update:
    """What an update makes of a test file.

    Args:
        text: The text of the test file.
        changed: How many expectations changed.
        data: The texts of data files with expected rows that changed.
        left: Expectations that can't be changed, as ``test: why``.
    """

    text: str
    changed: int = 0
    data: dict[FilePath, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def update(file: TestFile, outcomes: Mapping[str, TestOutcome]) -> Update:
    """Make the tests of a file expect what they got.

    A failure that came, or didn't come as expected, stays for a person to decide on.

    Args:
        file: The test file.
        outcomes: What its tests came to, by their names.
    """
    # Lines are told apart by their line feeds; `write` puts the others back.
    found = Update(file.document.source.replace("\r\n", "\n"))
    for test in file.tests:
        outcome = outcomes.get(test.name)
        if outcome is None:
            continue
        for declared, step in zip(test.steps, outcome.steps, strict=False):
            targets = {mismatch.target for mismatch in step.mismatches if mismatch.aspect == "rows"}
            for name, delivery in declared.expect.items():
                if name in targets and name in step.captured:
                    _deliver(found, test, delivery, step.captured[name], outcome.time_zone)
            if any(mismatch.aspect == "watermark" for mismatch in step.mismatches):
                _watermarks(found, test, declared, step, outcome.time_zone)
    return found


def is_left(outcome: TestOutcome) -> bool:
    """Whether something went wrong that no other expectation makes right."""
    unexpected = any(d.is_error for d in outcome.diagnostics) and outcome.expected_failure is None
    mismatches = [*outcome.mismatches, *(found for step in outcome.steps for found in step.mismatches)]
    failed = any(step.failures and step.expected_failure is None for step in outcome.steps)
    return unexpected or failed or any(found.aspect == "failure" for found in mismatches)


def write(found: Update, file: FilePath) -> None:
    """Write what has changed into the files.

    Args:
        found: The update.
        file: The test file.

    Raises:
        OSError: When a file can't be written.
    """
    for path, text in ({file: found.text} | found.data if found.changed else {}).items():
        before = path.read_bytes()
        mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
        content = mark + (text.replace("\n", "\r\n") if b"\r\n" in before else text).encode()
        if content != before:
            replace_file(path, content)


def replace_file(path: FilePath, content: bytes) -> None:
    """Give a file its content all at once, so that nobody ever sees a part of it.

    Args:
        path: The file; where it is a link, what it leads to.
        content: Its new content.

    Raises:
        OSError: When it can't be written.
    """
    path = path.resolve()
    if not path.exists():
        path.write_bytes(content)
        return
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
        shutil.copymode(path, draft)
        os.replace(draft, path)  # noqa: PTH105 (both are names already)
    except BaseException:
        os.unlink(draft)  # noqa: PTH108
        raise


def _deliver(found: Update, test: DeclaredTest, delivery: Delivery, captured: Captured, zone: str) -> None:
    """Make one target's expectation say what came."""
    shape = delivery.shape
    rows, fields = captured.rows.rows, captured.rows.fields
    editor = Editor(found.text)
    data: dict[FilePath, str] = {}
    # Where there are only rows, they stand where the expectation stands.
    written = expected_rows(delivery, test)
    try:
        if shape.rows is not None:
            entries = _entries(delivery, shape.rows, rows, fields, zone)
            if flow([entry.value for entry in entries]) != flow(shape.rows):
                editor.set_list(_rows_path(test, delivery), entries)
        elif written is not None and shape.file is not None:
            entries = _entries(delivery, written, rows, fields, zone)
            path = test.folder / shape.file
            data[path] = _data_text(path, [entry.value for entry in entries])
        if shape.count is not None and shape.count != len(rows):
            editor.set_value((*delivery.path, "count"), len(rows))
        schema = ", ".join(f"{quoted(column.name)} {column.type}" for column in fields)
        if shape.schema is not None and shape.schema != schema:
            editor.set_value((*delivery.path, "schema"), schema)
        text = editor.result()
    except CannotEditError:
        reason = f"what is expected of `{captured.target}` is written with aliases"
        found.left.append(f"{test.name}: {reason} or over other lines than its own; change it by hand")
        return
    found.changed += text != found.text or bool(data)
    found.text = text
    found.data |= data


def _rows_path(test: DeclaredTest, delivery: Delivery) -> Path:
    value: Any = test.document.values
    for step in delivery.path:
        value = value[step]
    return delivery.path if isinstance(value, list) else (*delivery.path, "rows")


def _entries(
    delivery: Delivery,
    written: Sequence[Any],
    rows: Sequence[tuple[Any, ...]],
    fields: Sequence[StructField],
    zone: str,
) -> list[Entry]:
    """The rows that came, each in the place of the expected row that it is or is nearest to."""
    shape = delivery.shape
    table = Table.of(written, rows, fields, zone, subset=delivery.subset, lenient=True)
    shower = Shower(zone)
    as_list = bool(written) and isinstance(written[0], list)
    pairs = [pair for pair in table.pairs() if pair.came is not None]
    if shape.ordered:
        pairs.sort(key=lambda pair: pair.came or 0)
    kept: list[Entry] = []
    new: list[Entry] = []
    for pair in pairs:
        assert pair.came is not None
        values = shower.row(table.came[pair.came], table.fields)
        if pair.wanted is None:
            if is_output(str(delivery.path[-1])):
                values = _told_of_rejected(values, written)
            (kept if shape.ordered else new).append(Entry(list(values.values()) if as_list else values))
        elif isinstance(before := written[pair.wanted], list):
            kept.append(_changed_list(before, list(values.values()), pair))
        else:
            kept.append(_changed_row(before, values, table, pair))
    return kept + sorted(new, key=lambda entry: flow(entry.value))


def _told_of_rejected(values: dict[str, Any], written: Sequence[Any]) -> dict[str, Any]:
    """Of a rejected row what it was, why, and what other rows say: when it was is never the same."""
    named = {*_SAID, *(name for row in written if isinstance(row, Mapping) for name in row)}
    return {name: value for name, value in values.items() if name in named}


def _changed_list(before: list[Any], values: list[Any], pair: Pair) -> Entry:
    if len(before) != len(values):
        return Entry(values, pair.wanted, tuple(range(len(values))))
    changed = [values[i] if i in pair.columns else value for i, value in enumerate(before)]
    return Entry(changed, pair.wanted, pair.columns)


def _changed_row(before: Mapping[str, Any], values: Mapping[str, Any], table: Table, pair: Pair) -> Entry:
    """A row with the columns that it had, those gone that there are none of, and those that matter now."""
    changed = [table.fields[index].name for index in pair.columns]
    gone = [name for name in before if name not in values]
    row = {
        name: values[name] if name in changed else value for name, value in before.items() if name in values
    }
    row |= {name: values[name] for name in changed}
    return Entry(row, pair.wanted, (*changed, *gone))


def _watermarks(
    found: Update, test: DeclaredTest, step: DeclaredStep, outcome: StepOutcome, zone: str
) -> None:
    """Make a step's watermarks those that were."""
    for target in step.watermark:
        came = {mark for name, mark in outcome.watermarks.items() if target in {None, name}}
        path = (*step.path, "watermark", *(() if target is None else (target,)))
        if len(came) != 1:
            found.left.append(f"{test.name}: step {step.number} has no one watermark; change it by hand")
            continue
        editor = Editor(found.text)
        moment = datetime.fromisoformat(came.pop())
        try:
            editor.set_value(path, Shower(zone).moment(moment))
            text = editor.result()
        except CannotEditError:
            found.left.append(f"{test.name}: step {step.number} has an aliased watermark; change it by hand")
            continue
        found.changed += text != found.text
        found.text = text


def _data_text(path: FilePath, rows: Sequence[Any]) -> str:
    """Rows as the text of a data file, in the form that the file has."""
    if path.suffix == ".csv":
        names = list(dict.fromkeys(name for row in rows for name in row))
        if not names:  # what is left of it is its header
            return path.read_text(encoding="utf-8-sig").partition("\n")[0] + "\n"
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
        return text.getvalue()
    lines = [json.dumps(row, ensure_ascii=False, default=float) for row in rows]
    if path.suffix == ".json" and path.read_text(encoding="utf-8-sig").lstrip().startswith("["):
        return "[{}\n]\n".format(",".join(f"\n  {line}" for line in lines))
    return "".join(f"{line}\n" for line in lines)


def _cell(value: Any) -> str:
    """A value as a CSV file has it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json.dumps(value, ensure_ascii=False, default=float)
