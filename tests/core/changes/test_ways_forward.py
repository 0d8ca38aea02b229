"""Each way forward that a hint offers is one that is taken, and none is offered where it is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gem_bundle.backfill.interval import Interval
from gem_bundle.backfill.rules import Wanted, judge
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import read_checkpoint
from gem_bundle.changes.compare import compare
from gem_bundle.changes.planning import hold_to_plan, plan_changes
from gem_bundle.changes.record import Accepted, Record, read_record, write_record
from gem_bundle.errors import PipelineError
from gem_bundle.run.fresh import check_fresh
from tests.core.changes.edits import (
    BASE,
    EDITS,
    ONCE,
    ORDERS,
    PASSED_ON,
    TOTALS,
    Edit,
    edited_verdict,
    plan,
    verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gem_bundle.changes.model import Change
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.plan import Plan

FRESH = "egin anew with `gem-bundle run shop.yaml --fresh out`"
NO_FRESH = "`gem-bundle run shop.yaml --fresh out` doesn't take it: "
NAMES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
BACKFILL = (
    "`gem-bundle backfill shop.yaml --target out --from TIME --to TIME` computes earlier results by it."
)
STRICTER = (("n > 0", "n > 1"),)
KEPT = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int, at timestamp"}}
transforms:
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  some: {gem: filter, input: timely, options: {condition: n > 0}}
targets:
  out: {gem: delta, input: some, options: {path: out}}
"""
WINDOWS = BASE.replace(
    "gem: file, input: named, options: {format: json,", "gem: delta, input: named, options: {"
)
PROCESSED = """
pipeline: shop
spark: {spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider}
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  some: {gem: filter, input: clicks, options: {condition: n > 0}}
  seen:
    gem: stateful
    input: some
    options: {group_by: [page], processor: "jobs:Seen", schema: "page string", output_mode: append}
targets:
  out: {gem: delta, input: seen, options: {path: out}}
"""


def edited(edit: Edit) -> str:
    text = edit.base
    for old, new in edit.replaced:
        assert old in text, edit.name
        text = text.replace(old, new, 1)
    return text


def left_behind(edit: Edit, folder: Path, *, log: str = "v2", watermark: int = 1_800_000_000_000) -> Plan:
    """The pipeline as it is now, with the checkpoint and the record that what it was has left."""
    checkpoints = "" if "checkpoints:" in edit.base else f"\ncheckpoints: {folder}"
    base, text = (
        text.replace("pipeline: shop", f"pipeline: shop{checkpoints}", 1)
        for text in (edit.base, edited(edit))
    )
    before, now = plan(base), plan(text, edit.folder)
    at = Path(before.definition.checkpoint("out"))
    for name in ("offsets", "commits"):
        (at / name).mkdir(parents=True)
    version = edit.ran(version_of(before, "out"))
    readers = [name for node in version.nodes for name in node.readers]
    head = json.dumps({"batchWatermarkMs": watermark, "batchTimestampMs": 1, "conf": {}})
    offsets = [f"{name}:{{}}" if log == "v2" else "{}" for name in readers]
    (at / "metadata").write_text('{"id": "q"}')
    for number in "01":
        (at / "offsets" / number).write_text("\n".join([log, head, *offsets]))
        (at / "commits" / number).write_text(f'v1\n{{"nextBatchWatermarkMs":{watermark}}}')
    write_record(str(at), Record("out", (version,), "q"))
    return now


def changes(now: Plan) -> tuple[Change, ...]:
    (found,), wrong = plan_changes(now, ["out"])
    assert not wrong
    return found.changes


def hints(edit: Edit, folder: Path) -> str:
    return "\n".join(change.hint for change in changes(left_behind(edit, folder)))


def refused_by_backfill(now: Plan) -> list[str]:
    location = now.definition.checkpoint("out")
    day = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
    judged = judge(now, Wanted("out", day), read_checkpoint(location, last=2), read_record(location))
    return [problem.message for problem in judged.problems]


MORE_EDITS = [
    Edit("a filter before a Delta table", STRICTER, "from_now_on", ("GB423",), KEPT),
    Edit("a filter before windows in a Delta table", STRICTER, "mixed", ("GB423",), WINDOWS),
    Edit(
        "a name behind windows in a Delta table",
        (("{page: path}", "{page: url}"),),
        "from_now_on",
        ("GB423",),
        WINDOWS,
    ),
    Edit(
        "the time of rows made otherwise",
        (
            (
                "  some:",
                "  moved: {gem: with_columns, input: timely, options: {columns: {n: n + 1}}}\n  some:",
            ),
        ),
        "from_now_on",
        ("GB420",),
        KEPT,
    ),
    Edit(
        "a topic more and other state",
        (("subscribe: orders", "subscribe: 'orders,sales'"), ("interval 1 hour\n", "interval 2 hours\n")),
        "mixed",
        ("GB414", "GB423"),
        ORDERS,
    ),
    Edit(
        "another topic and other state",
        (("subscribe: orders", "subscribe: sales"), ("interval 1 hour\n", "interval 2 hours\n")),
        "refused",
        ("GB414", "GB423"),
        ORDERS,
    ),
]


def held(now: Plan, accept: Sequence[tuple[str, str]] = ()) -> tuple[list[Accepted], list[Diagnostic]]:
    """What a run with new state takes of an edit, and what stops it."""
    try:
        return list(hold_to_plan(now, ["out"], accept, fresh=["out"])["out"]), []
    except PipelineError as stopped:
        return [], list(stopped.diagnostics)


# Of a checkpoint and the record beside it.
OF_RECORDS = [edit for edit in (*EDITS, *MORE_EDITS) if edit.told is None]


@pytest.mark.parametrize("edit", OF_RECORDS, ids=lambda edit: edit.name)
def test_what_a_hint_offers_is_taken(edit: Edit, tmp_path: Path) -> None:
    now = left_behind(edit, tmp_path)
    told = "\n".join(change.hint for change in changes(now))
    refused = [diagnostic.message for diagnostic in check_fresh(now, "out")]
    if FRESH in told:
        assert refused == []
        settled = {change.code for change in changes(now) if FRESH in change.hint}
        stopping = held(now)[1]
        assert not settled & {diagnostic.code for diagnostic in stopping}
    if NO_FRESH in told:
        assert refused
    if "gem-bundle backfill" in told:
        assert refused_by_backfill(now) == []


def test_the_ways_are_offered_at_all(tmp_path: Path) -> None:
    offered = [hints(edit, tmp_path / str(n)) for n, edit in enumerate(OF_RECORDS)]
    assert sum(FRESH in told for told in offered) > 10
    assert sum(BACKFILL in told for told in offered) > 1


GROUPED = WINDOWS.replace("input: named,", "input: named, group: both,") + (
    "  more: {gem: delta, input: named, group: both, options: {path: more}}\n"
)
HEARD = """
pipeline: shop
sources:
  lines: {gem: socket, options: {host: localhost, port: 9999}}
transforms:
  some: {gem: filter, input: lines, options: {condition: length(value) > 0}}
  total: {gem: aggregate, input: some, options: {aggregates: {n: count(*)}}}
targets:
  out: {gem: console, input: total, output_mode: update}
"""
LIVE = PASSED_ON.replace("update,", "update, trigger: {real_time: 5 minutes},").replace(
    "shop\n", "shop\nspark: {spark.sql.shuffle.partitions: 7}\n", 1
)
REFUSED = {
    "its targets share a checkpoint": (
        Edit("a group", STRICTER, "mixed", (), GROUPED),
        "it is in the group `both`, whose targets share a checkpoint",
    ),
    "its rows are nowhere kept": (
        Edit("a socket", (("> 0", "> 1"),), "mixed", (), HEARD),
        "its source `lines` can't be read from an offset: `socket` keeps no rows",
    ),
    "it makes no micro-batches": (
        Edit("real time", (("partitions: 7", "partitions: 8"),), "continues", (), LIVE),
        "its trigger makes no micro-batches that end",
    ),
    "its state is described anew": (
        Edit("a processor", STRICTER, "mixed", (), PROCESSED),
        "its state is of a kind whose description changes from one micro-batch to the next",
    ),
    "its checkpoint isn't a folder": (
        Edit(
            "a store",
            STRICTER,
            "mixed",
            (),
            BASE.replace("shop\n", "shop\ncheckpoints: s3a://bucket/it\n", 1),
        ),
        "its checkpoint isn't on a disk",
    ),
}


@pytest.mark.parametrize("why", list(REFUSED))
def test_new_state_is_not_offered_where_it_is_refused(why: str) -> None:
    edit, reason = REFUSED[why]
    found = edited_verdict(edit)
    told = [change.hint for change in found.changes]
    assert told
    assert all(f"{NO_FRESH}{reason}" in hint for hint in told), told
    (refused,) = check_fresh(plan(edited(edit)), "out")
    assert reason in refused.message


@pytest.mark.parametrize("log", ["v1", "unfinished"])
def test_what_the_checkpoint_has_against_new_state_is_told(log: str, tmp_path: Path) -> None:
    names = "" if log == "unfinished" else f"\nspark: {{{NAMES}: false}}"
    edit = Edit("", STRICTER, "mixed", (), BASE.replace("pipeline: shop", f"pipeline: shop{names}"))
    now = left_behind(edit, tmp_path, log="v1" if names else "v2")
    if not names:
        (Path(now.definition.checkpoint("out")) / "commits" / "1").unlink()
    (change,) = changes(now)
    (refused,) = check_fresh(now, "out")
    assert change.hint.startswith(f"{NO_FRESH}{refused.message.partition(': ')[2]}. ")
    assert change.hint.endswith(refused.hint)


SHARED = KEPT + "  again: {gem: delta, input: some, options: {path: out}}\n"


@pytest.mark.parametrize(
    "base",
    [
        KEPT.replace("gem: delta, input: some", "gem: delta, input: some, group: both"),
        KEPT.replace("some, options: {", "some, output_mode: update, options: {merge: {on: [page]}, "),
        KEPT.replace("input: timely", "input: clicks"),
        KEPT.replace(
            "gem: delta, input: some, options: {", "gem: file, input: some, options: {format: json, "
        ),
        SHARED,
    ],
    ids=["in a group", "in update", "without event time", "into files", "into a shared table"],
)
def test_what_can_not_be_computed_anew_is_not_offered(base: str, tmp_path: Path) -> None:
    edit = Edit("", STRICTER, "from_now_on", (), base)
    assert [change.hint for change in edited_verdict(edit).changes] == [""]
    assert refused_by_backfill(left_behind(edit, tmp_path))


TWO_FILES = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
  more: {gem: file, options: {format: json, path: more, schema: "page string, n int"}}
transforms:
  all: {gem: union, inputs: [clicks, more]}
  some: {gem: filter, input: all, options: {condition: n > 0}}
  pages: {gem: deduplicate, input: some, options: {columns: [page]}}
targets:
  out: {gem: file, input: pages, options: {format: json, path: out}}
"""
WITHOUT_MORE = (
    ('  more: {gem: file, options: {format: json, path: more, schema: "page string, n int"}}\n', ""),
    ("  all: {gem: union, inputs: [clicks, more]}\n", ""),
    ("input: all", "input: clicks"),
)
RENAMED = (("clicks: {gem", "visits: {gem"), ("[clicks, more]", "[visits, more]"))
ELSEWHERE = (("format: json, path: out", "format: json, path: out2"),)


@pytest.mark.parametrize(
    ("replaced", "stopping"),
    [
        (STRICTER, []),
        ((("columns: [page]", "columns: [page, n]"),), []),
        (WITHOUT_MORE + STRICTER, ["skipped GB411"]),
        (WITHOUT_MORE + ELSEWHERE, ["skipped GB411", "mixed GB431"]),
        (RENAMED + STRICTER, ["again GB412"]),
        (ELSEWHERE, ["mixed GB431"]),
    ],
    ids=["a filter", "other state", "a source less", "and other files", "another id", "other files"],
)
def test_new_state_settles_what_is_about_state_alone(
    replaced: tuple[tuple[str, str], ...], stopping: list[str], tmp_path: Path
) -> None:
    now = left_behind(Edit("", replaced, "mixed", (), TWO_FILES), tmp_path)
    assert {change.verdict for change in changes(now)} & {"mixed", "refused", "again", "skipped"}
    _, found = held(now)
    said = sorted(f"{d.message.partition(':')[0]} {d.code}" for d in found)
    assert said == sorted(stopping)
    accept = [(told.partition(" ")[2], "") for told in stopping]
    taken, found = held(now, accept)
    assert not found
    assert sorted({(one.code, "") for one in taken}) == sorted(accept)


def test_what_new_state_has_forgotten_comes_again(tmp_path: Path) -> None:
    """Duplicates of what was read are dropped by the old state alone."""
    now = left_behind(
        Edit(
            "", (("clicks: {gem", "visits: {gem"), ("input: clicks", "input: visits")), "continues", (), ONCE
        ),
        tmp_path,
    )
    assert [(change.verdict, change.code) for change in changes(now)] == [("continues", "GB412")]
    _, (found,) = held(now)
    assert (found.code, found.message.partition(":")[0]) == ("GB412", "again")
    assert "changes no result" not in found.message


def test_a_table_that_is_written_anew_has_nothing_of_what_was_forgotten(tmp_path: Path) -> None:
    now = left_behind(
        Edit("", (("output_mode: update", "output_mode: complete"),), "continues", (), TOTALS), tmp_path
    )
    assert [(change.verdict, change.code) for change in changes(now)] == [("continues", "GB433")]
    assert [found.code for found in held(now)[1]] == ["GB433"]


def test_to_write_all_results_there_is_no_state_that_has_them() -> None:
    edit = Edit("", (("input: named,", "input: named, output_mode: complete,"),), "mixed", (), WINDOWS)
    (change,) = edited_verdict(edit).changes
    assert (change.verdict, change.code) == ("mixed", "GB433")
    assert "--fresh" not in change.hint
    assert "another id and another place" in change.hint


MOVED = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "n int"}}
targets:
  out: {gem: console, input: clicks}
"""


def test_only_of_files_the_checkpoint_keeps_whole_paths() -> None:
    (files,) = edited_verdict(Edit("", (), "refused", (), MOVED, "/elsewhere")).changes
    assert (files.verdict, files.code) == ("refused", "GB416")
    assert "whole paths of the files" in files.message
    assert files.hint.endswith("if the files, or a link to them, are there: `/shop/data`.")
    tables = re.sub("gem: file.*$", "gem: delta, options: {path: data}}", MOVED, flags=re.M)
    (table,) = verdict(tables, tables, folder="/elsewhere").changes
    assert (table.verdict, table.code) == ("continues", "GB416")
    assert "by an id" in table.message
    # The way that is offered is one.
    there = MOVED.replace("path: data", "path: /shop/data")
    assert verdict(MOVED, there, folder="/elsewhere").verdict == "same"


def test_by_a_glob_files_that_came_along_are_read_again_unless_their_names_count() -> None:
    globbed = MOVED.replace("path: data", "path: data/*.json")
    (files,) = verdict(globbed, globbed, folder="/elsewhere").changes
    assert (files.verdict, files.code) == ("again", "GB416")
    assert "all that came along is read again" in files.message
    assert files.hint.endswith("`/shop/data/*.json`.")
    named = globbed.replace("path:", "file_name_only: true, path:")
    (files,) = verdict(named, named, folder="/elsewhere").changes
    assert (files.verdict, files.code) == ("continues", "GB416")


BESIDE = """
pipeline: shop
sources:
  clicks: {gem: kafka, options: {bootstrap_servers: "kafka:9092", subscribe: x}}
  pages: {gem: file, mode: batch, options: {format: json, path: data, schema: "key binary, page string"}}
transforms:
  wide: {gem: join, inputs: [clicks, pages], options: {how: inner, on: [key]}}
  counts: {gem: aggregate, input: wide, options: {group_by: [page], aggregates: {n: count(*)}}}
targets:
  out: {gem: console, input: counts, output_mode: update}
"""


@pytest.mark.parametrize("path", ["data", "data/*.json", "data, recursive_file_lookup: true"])
def test_a_table_beside_a_stream_comes_along_with_the_project(path: str, tmp_path: Path) -> None:
    text = BESIDE.replace("path: data", f"path: {path}")
    gone = verdict(text, text, folder=str(tmp_path))
    assert [(change.verdict, change.code) for change in gone.changes] == [("mixed", "GB414")]
    (tmp_path / "data").mkdir()
    (came,) = verdict(text, text, folder=str(tmp_path)).changes
    assert (came.verdict, came.code) == ("continues", "GB416")
    assert "what `path` names has come along" in came.message


def test_another_way_to_read_a_source_says_what_is_left_to_do() -> None:
    streamed = BESIDE.replace("mode: batch, ", "")
    (table,) = (c for c in verdict(streamed, BESIDE).changes if c.code == "GB417")
    assert "rows of the other stream that wait for one get none any more" in table.message
    (stream,) = (c for c in verdict(BESIDE, streamed).changes if c.code == "GB417")
    assert stream.hint.startswith("Keep `mode: batch`.")


WRITTEN = MOVED.replace("console, input: clicks", "delta, input: clicks, options: {path: out}")


@pytest.mark.parametrize("there", [True, False])
def test_a_table_comes_along_with_the_project_or_a_new_one_begins(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "out" / "_delta_log").mkdir(parents=True)
    found = verdict(WRITTEN, WRITTEN, folder=str(tmp_path))
    (table,) = (change for change in found.changes if change.node == "out")
    assert (table.verdict, table.code) == (("continues", "GB416") if there else ("from_now_on", "GB431"))
    assert ("what `path` names has come along" in table.message) == there
    # Another path within the project is another table, whatever is there.
    other = WRITTEN.replace("path: out", "path: more")
    (tmp_path / "more").mkdir()
    found = verdict(WRITTEN, other, folder=str(tmp_path))
    assert [change.code for change in found.changes if change.node == "out"] == ["GB431"]


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_of_files_that_came_along_has_a_log_of_the_old_place(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
        (tmp_path / "out" / "_spark_metadata" / "0").write_text("v1")
    text = WRITTEN.replace(
        "delta, input: clicks, options: {", "file, input: clicks, options: {format: json, "
    )
    found = verdict(text, text, folder=str(tmp_path))
    (files,) = (change for change in found.changes if change.node == "out")
    assert (files.verdict, files.code) == ("mixed", "GB431")
    assert ("names its files by their whole paths" in files.message) == there
    assert ("log begins in the middle" in files.message) != there


def test_a_place_that_the_environment_names_is_another_one_when_that_does() -> None:
    text = MOVED.replace("path: data", 'path: "${env:DIR}/in"').replace(
        "gem: console, input: clicks",
        'gem: file, input: clicks, options: {format: json, path: "${env:DIR}/out"}',
    )
    one, two = (plan(text, variables={"DIR": there}) for there in ("/one", "/two"))
    found = compare(version_of(one, "out"), version_of(two, "out"), two, "out")
    assert [(change.verdict, change.code) for change in found.changes] == [
        ("refused", "GB414"),
        ("mixed", "GB431"),
    ]
    assert "`path` was `/one/in` and is `/two/in`" in found.changes[0].message


SHIPPED = KEPT.replace(
    'gem: file, options: {format: json, path: data, schema: "page string, n int, at timestamp"}',
    "gem: delta, options: {path: data}",
)


@pytest.mark.parametrize(
    ("file", "profile", "within", "command"),
    [
        ("my shop.yaml", None, None, "`gem-bundle run 'my shop.yaml' --fresh out`"),
        ("shop.yaml", "prod", None, "`gem-bundle run shop.yaml --profile prod --fresh out`"),
        ("", None, None, "`gem-bundle run --fresh out`"),
        ("shop.yaml", None, lambda name: None, "`--fresh out`"),
    ],
    ids=["a file", "a profile", "written in Python", "a bundle"],
)
def test_a_way_is_a_command_that_can_be_given(
    file: str, profile: str | None, within: Callable[[str], bytes | None] | None, command: str
) -> None:
    before, now = plan(WINDOWS), plan(WINDOWS.replace("n > 0", "n > 1"))
    now = replace(now, definition=replace(now.definition, file=file, profile=profile, within=within))
    found = compare(version_of(before, "out"), version_of(now, "out"), now, "out")
    assert [change.hint.partition("egin anew with ")[2].partition(",")[0] for change in found.changes] == [
        command
    ]


def test_whoever_knows_that_a_table_has_only_moved_may_say_so(tmp_path: Path) -> None:
    elsewhere = (("path: data", "path: data2"),)
    now = left_behind(Edit("", elsewhere, "refused", (), SHIPPED), tmp_path)
    (refused,) = check_fresh(now, "out")
    assert "`--accept GB414:clicks`" in refused.hint
    for taken in ("", "clicks"):
        assert check_fresh(now, "out", accept=[("GB414", taken)]) == []
        assert held(now, [("GB414", taken)])[1] == []
    assert check_fresh(now, "out", accept=[("GB414", "other")])
    # What the checkpoint keeps of files are their paths, whatever anybody says.
    now = left_behind(Edit("", elsewhere, "refused", (), KEPT), tmp_path / "files")
    (refused,) = check_fresh(now, "out", accept=[("GB414", "")])
    assert "--accept" not in refused.hint


def test_how_to_accept_a_change_is_told_once() -> None:
    for replaced in (WITHOUT_MORE, RENAMED):
        change = next(
            c for c in edited_verdict(Edit("", replaced, "again", (), TWO_FILES)).changes if c.stops
        )
        assert change.diagnostic().hint.count(f"`--accept {change.code}:{change.node}`") == 1
