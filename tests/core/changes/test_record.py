"""The record beside a checkpoint: what is kept comes back, and what is no record is said to be none."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from gem_bundle.changes.record import (
    FORMAT,
    Accepted,
    InputRecord,
    NodeRecord,
    OperatorRecord,
    Record,
    RecordError,
    VersionRecord,
)
from gem_bundle.changes.withheld import SECRET

SOURCE = NodeRecord(
    "clicks",
    "source",
    "kafka",
    "gem-bundle",
    "0.1.0",
    {"bootstrap_servers": ["b:9092"], "password": SECRET},
    mode="stream",
    places={"subscribe": ("kafka://b:9092/clicks",)},
    readers=("clicks", "clicks__joined_2"),
    columns=(("key", "binary"), ("value", None)),
)
TARGET = NodeRecord(
    "table",
    "target",
    "delta",
    options={"path": "/out"},
    inputs=(InputRecord("clicks", "", "clicks"),),
    output_mode="append",
    trigger="processing_time: 10 seconds",
    functions={"function": "ab12"},
    was=("old",),
)
VERSION = VersionRecord(
    first_batch=3,
    started="2026-05-04T10:00:00+00:00",
    pipeline="clicks",
    pipeline_version="1.0.0",
    gem_bundle="0.1.0",
    spark="4.2.0",
    python="3.11.2",
    folder="/project",
    checkpoint="/project/checkpoints/clicks/table",
    nodes=(SOURCE, TARGET),
    operators=(
        OperatorRecord(0, "watermark", "timely", (), False, {"column": "at", "delay": "1 minute"}),
        OperatorRecord(1, "aggregate", "counts", (0,), True, {}, keys=("page",), values=("n",)),
    ),
    settings={"spark.sql.shuffle.partitions": "4"},
    deciding={"spark.sql.session.timeZone": "UTC"},
    accepted=(Accepted("GB410", "counts", "2026-05-04T10:00:00+00:00"),),
    continues="/old",
)
RECORD = Record("table", (VERSION,), query="6f")


def test_what_is_kept_comes_back() -> None:
    assert Record.from_json(RECORD.as_json()) == RECORD


def test_versions_are_compared_without_when_they_ran() -> None:
    later = replace(VERSION, first_batch=9, started="2027", accepted=(), continues="")
    assert VERSION.is_same(later)
    read = Record.from_json(RECORD.as_json()).newest
    assert read is not None
    assert read.is_same(VERSION)
    assert not VERSION.is_same(replace(VERSION, spark="4.3.0"))
    assert not VERSION.is_same(replace(VERSION, nodes=(SOURCE, replace(TARGET, output_mode="update"))))


def test_a_version_that_ran_no_micro_batch_is_left_out() -> None:
    version = replace(VERSION, continues="")
    other = replace(version, first_batch=7)
    record = replace(RECORD, versions=(version, other))
    assert record.until(8).newest == other
    assert record.until(7).newest == version
    assert record.until(3).newest is None


def test_what_a_later_gem_bundle_of_this_format_adds_is_passed_over() -> None:
    content = json.loads(RECORD.as_json())
    content["more"] = content["versions"][0]["more"] = content["versions"][0]["nodes"][0]["more"] = 1
    assert Record.from_json(json.dumps(content)) == RECORD


@pytest.mark.parametrize("cut", range(0, len(RECORD.as_json()) - 2, 37))
def test_a_record_that_is_cut_off_is_said_to_be(cut: int) -> None:
    with pytest.raises(RecordError, match="is cut off, or isn't JSON"):
        Record.from_json(RECORD.as_json()[:cut])


def test_a_record_of_a_later_format_is_said_to_be() -> None:
    with pytest.raises(RecordError, match=f"is of format {FORMAT + 1}"):
        Record.from_json(RECORD.as_json().replace(f'"format": {FORMAT}', f'"format": {FORMAT + 1}'))


def _places(content: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = list(content.items() if isinstance(content, dict) else enumerate(content))
    found: list[tuple[str | int, ...]] = []
    for key, item in items:
        found.append((*path, key))
        if isinstance(item, dict | list):
            found += _places(item, (*path, key))
    return found


DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]


@pytest.mark.parametrize("wrong", [None, 1, "x", "\ud800", [], {}, [[1]], {"a": 1}, {"a": DEEP}])
def test_something_else_anywhere_in_a_record_is_no_traceback(wrong: Any) -> None:
    for path in _places(json.loads(RECORD.as_json())):
        content = json.loads(RECORD.as_json())
        inner: Any = content
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = wrong
        try:
            read = Record.from_json(json.dumps(content))
            json.dumps(asdict(read), ensure_ascii=False).encode()
        except RecordError as error:
            assert str(error).startswith(("isn't a record of gem-bundle", "is damaged"))  # noqa: PT017 (most are records all the same)
