"""`gem-bundle checkpoint show`: what the checkpoints of a pipeline hold, without starting Spark."""

from __future__ import annotations

import json
import shutil
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import pytest

from gem_bundle.changes.begun import journal_of
from gem_bundle.changes.record import Accepted, Record, write_record
from tests.core.changes.test_record import VERSION
from tests.core.cli.left_by_runs import killed_while_it_began_anew, left_by_a_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.cli.conftest import Cli

LEFT = Path(__file__).parents[1] / "changes" / "checkpoints" / "4.1.1"
PIPELINE = """
pipeline: clicks
parameters: {root: checkpoints}
checkpoints: ${root}
sources:
  numbers: {gem: file, options: {path: in, format: json, schema: "id bigint"}}
targets:
  table: {gem: file, input: numbers, options: {path: out, format: json}}
  other: {gem: file, input: numbers, options: {path: other, format: json}}
"""


@pytest.fixture
def clicks(project: Callable[..., Path]) -> Path:
    """A pipeline whose target `table` has an aggregation's checkpoint, and `other` none."""
    file = project("clicks.yaml", PIPELINE)
    shutil.copytree(LEFT / "aggregation", file.parent / "checkpoints/clicks/table")
    return file


def told(cli: Cli, *arguments: str) -> list[str]:
    result = cli("checkpoint", "show", *arguments)
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_it_tells_of_each_target_in_words(cli: Cli, clicks: Path) -> None:
    lines = told(cli, "clicks.yaml")
    assert lines[:4] == [
        "table",
        f"place {clicks.parent}/checkpoints/clicks/table",
        f"query {json.loads((clicks.parent / 'checkpoints/clicks/table/metadata').read_text())['id']}",
        "next micro-batch 6: all that were begun are done",
    ]
    assert "watermark 2026-01-01T00:01:49+00:00: older rows are late" in lines
    assert "offsets source 0: entry 2 of its log of files" in lines
    assert any(line.startswith("5: done, planned 20") for line in lines)
    (state,) = [line for line in lines if line.startswith("state")]
    assert "operator 0 (stateStoreSave)" in state
    assert (
        "2 partitions, keys window struct<start: timestamp, end: timestamp>, id string, values sum" in state
    )
    assert "spark.sql.shuffle.partitions = 2" in "\n".join(lines)
    assert "history no record: what ran before records were kept isn't known" in lines
    assert lines[-2:] == ["other", "There is no checkpoint yet: nothing has run."]


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_it_tells_what_a_killed_run_has_begun_anew(
    cli: Cli, project: Callable[..., Path], renamed: int
) -> None:
    file = project("clicks.yaml", PIPELINE)
    left_by_a_run(file, "numbers")
    kept = killed_while_it_began_anew(file, "table", renamed)
    lines = told(cli, "clicks.yaml", "--target", "table")
    assert lines[1:5] == [
        f"place {file.parent}/checkpoints/clicks/table",
        f"fresh killed before it was done: the next run ends it, and keeps the old one as {kept}",
        "query q",
        "next micro-batch 1: all that were begun are done",
    ]
    assert lines[-1].endswith(f", begun where {kept} ended")
    result = cli("checkpoint", "show", "clicks.yaml", "--format", "json")
    targets = json.loads(result.stdout)["targets"]
    assert targets["table"]["fresh"] == {"kept": str(kept)}
    assert targets["other"]["fresh"] is None
    journal_of(kept.with_name("table")).write_text("{", encoding="utf-8")
    result = cli("checkpoint", "show", "clicks.yaml", "--target", "table")
    assert result.exit_code == 1
    assert "clicks.yaml:8:3: error[GB407]: target `table` can't begin with new state" in result.stderr


def test_it_tells_which_versions_ran(cli: Cli, clicks: Path) -> None:
    first = replace(VERSION, first_batch=2, accepted=(), continues="")
    accepted = (Accepted("GB410", "counts"), Accepted("GB411"))
    second = replace(first, first_batch=4, pipeline_version="2.0.0", accepted=accepted, continues="/old")
    never = replace(first, first_batch=6)
    place = str(clicks.parent / "checkpoints/clicks/table")
    write_record(place, Record("table", (first, second, never)))
    lines = told(cli, "clicks.yaml", "--target", "table")
    at = lines.index("history up to micro-batch 1: not known")
    assert [line.partition(",")[0] for line in lines[at + 1 :]] == [
        "from micro-batch 2: version 1.0.0",
        "from micro-batch 4: version 2.0.0",
    ]
    assert lines[-1].endswith("accepted GB410:counts, GB411, begun where /old ended")


@pytest.mark.parametrize("restarted", [False, True])
def test_the_partitions_are_frozen_before_the_first_restart_too(
    cli: Cli, clicks: Path, *, restarted: bool
) -> None:
    # Spark 4.2 writes them into the log from the first restart on.
    for offsets in (clicks.parent / "checkpoints/clicks/table/offsets").glob("[0-9]*"):
        version, head, *sources = offsets.read_text().splitlines()
        values = json.loads(head)
        assert values["conf"].pop("spark.sql.shuffle.partitions") == "2"
        values["conf"] |= {"spark.sql.shuffle.partitions": "2"} if restarted else {}
        offsets.write_text("\n".join([version, json.dumps(values), *sources]))
    lines = told(cli, "clicks.yaml", "--target", "table")
    assert [line for line in lines if line.endswith("spark.sql.shuffle.partitions = 2")] != []
    result = cli("checkpoint", "show", "clicks.yaml", "--format", "json")
    table = json.loads(result.stdout)["targets"]["table"]
    assert table["settings"]["spark.sql.shuffle.partitions"] == "2"


def test_as_json_it_has_all_of_it(cli: Cli, clicks: Path) -> None:
    result = cli("checkpoint", "show", "clicks.yaml", "--format", "json")
    found = json.loads(result.stdout)
    assert found["ok"] is True
    table, other = found["targets"]["table"], found["targets"]["other"]
    assert (table["exists"], table["next_batch"], table["unfinished_batch"]) == (True, 6, None)
    assert table["offsets"] == {"0": {"logOffset": 2}}
    assert [batch["batch"] for batch in table["micro_batches"]] == [4, 5]
    assert table["operators"][0]["stores"][0]["values"] == [["sum", "bigint"]]
    assert table["watermark"] == "2026-01-01T00:01:49+00:00"
    assert (other["exists"], other["operators"], other["versions"]) == (False, [], [])


def test_a_micro_batch_that_was_begun_is_run_again(cli: Cli, clicks: Path) -> None:
    (clicks.parent / "checkpoints/clicks/table/commits/5").unlink()
    lines = told(cli, "clicks.yaml")
    assert "next micro-batch 5, which was begun and isn't done, again" in lines
    assert any(line.startswith("5: begun, and not done, planned") for line in lines)


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        ('{"clicks":{"10":7,"2":5},"views":{"0":1}}', "clicks: 2 at 5, 10 at 7; views: 0 at 1"),
        ('{"sourceVersion":1,"reservoirId":"ab","reservoirVersion":4,"index":-1}', "reservoirVersion 4"),
        ("-", "nothing yet"),
        ("42", "42"),
        ("what else", "what else"),
        ('{"a":[1]}', '{"a": [1]}'),
    ],
)
def test_offsets_of_each_kind_are_told(cli: Cli, clicks: Path, offsets: str, says: str) -> None:
    file = clicks.parent / "checkpoints/clicks/table/offsets/5"
    _, head, _ = file.read_text().split("\n")[:3]
    file.write_text(f"v2\n{head}\nclicks:{offsets}\nb_2:-")
    (line,) = [line for line in told(cli, "clicks.yaml") if line.startswith("offsets")]
    assert line.startswith("offsets `clicks`: ")
    assert says in line


def test_what_is_damaged_is_said_and_the_rest_shown(cli: Cli, clicks: Path) -> None:
    (clicks.parent / "checkpoints/clicks/table/offsets/5").write_text("v1\n{")
    write_record(str(clicks.parent / "checkpoints/clicks/other"), Record("other"))
    (clicks.parent / "checkpoints/clicks/.other.record.json").write_text("{")
    result = cli("checkpoint", "show", "clicks.yaml")
    assert result.exit_code == 1
    assert "clicks.yaml:8:3: error[GB402]" in result.stderr
    assert "clicks.yaml:9:3: error[GB404]" in result.stderr
    assert "micro-batch 6" in result.stdout
    found = json.loads(cli("checkpoint", "show", "clicks.yaml", "--format", "json").stdout)
    assert found["ok"] is False
    assert found["targets"]["table"]["diagnostics"][0]["code"] == "GB402"


def test_a_folder_in_a_files_place_and_an_odd_schema_are_no_traceback(cli: Cli, clicks: Path) -> None:
    left = clicks.parent / "checkpoints/clicks/table"
    (left / "state/0/0/_metadata/schema").write_text('{"type":"struct","fields":[1]}{"type":"struct"}')
    assert any("operator 0 (stateStoreSave)" in line for line in told(cli, "clicks.yaml"))
    (left / "metadata").unlink()
    (left / "metadata").mkdir()
    for command in (("checkpoint", "show"), ("plan",)):
        result = cli(*command, "clicks.yaml", "--format", "json")
        assert result.exit_code == 1
        found = json.loads(result.stdout)
        told_of = found.get("diagnostics") or found["targets"]["table"]["diagnostics"]
        (wrong,) = [diagnostic for diagnostic in told_of if diagnostic["severity"] == "error"]
        assert wrong["code"] == "GB402"
        assert "`metadata` is no file" in wrong["message"]


def test_one_that_can_not_be_seen_is_said_to_be_so(cli: Cli, clicks: Path) -> None:
    result = cli("checkpoint", "show", "clicks.yaml", "-p", "root=wasbs://box@account/c", "--target", "table")
    assert result.exit_code == 1
    assert "clicks.yaml:8:3: error[GB406]" in result.stderr
    assert result.stdout == ""


def test_a_login_in_its_address_is_not_shown(cli: Cli, clicks: Path) -> None:
    place = f"memory://me:pa55word@{uuid.uuid4().hex}"
    fsspec.filesystem("memory").pipe(f"{place}/clicks/table/metadata", b"{")
    fsspec.filesystem("memory").pipe(f"{place}/clicks/other/metadata", b'{"id": "q"}')
    for root in (place, "wasbs://me:pa55word@account/c"):
        for more in ((), ("--format", "json")):
            for command in (("checkpoint", "show"), ("plan",)):
                result = cli(*command, "clicks.yaml", "-p", f"root={root}", *more)
                assert result.exit_code == 1
                assert "GB40" in result.output
                assert "pa55word" not in result.output


def test_a_wrong_target_and_a_wrong_file_are_said_so(cli: Cli, clicks: Path) -> None:
    wrong = cli("checkpoint", "show", "clicks.yaml", "--target", "tabel")
    assert wrong.exit_code == 1
    assert "GB108" in wrong.stderr
    assert "Did you mean `table`?" in wrong.stderr
    assert cli("checkpoint", "show", "absent.yaml").exit_code == 1
    assert cli("checkpoint", "frobnicate", "clicks.yaml").exit_code == 2
    clicks.write_text(PIPELINE.replace("${root}", "${env:GEM_BUNDLE_ABSENT}"))
    missing = cli("checkpoint", "show", "clicks.yaml")
    assert missing.exit_code == 1
    assert "GB014" in missing.stderr


UNDECIDED: list[tuple[str, str, tuple[str, ...], str]] = [
    ("", "", ("--profile", "prdo"), "GB013"),
    ("", "", ("-p", "x=1"), "GB010"),
    ("", "", ("-p", "rot=checkpoints"), "GB010"),
    ("{root: checkpoints}", "{root: {type: string}}", (), "GB011"),
    ("{root: checkpoints}", "{root: {type: string}}", ("-p", "rot=checkpoints"), "GB010"),
    ("{root: checkpoints}", "{root: {type: integer}}", ("-p", "root=here"), "GB012"),
    ("{root: checkpoints}", "{root: {type: string}, n: 1}", ("-p", "root=here", "-p", "n=x"), "GB012"),
    ("{root: checkpoints}", "{root: checkpoints}\nprofiles: {p: {rot: there}}", ("--profile", "p"), "GB010"),
    ("{root: checkpoints}", "{root: checkpoints}\nprofiles: {p: 3}", ("--profile", "p"), "GB005"),
    ("{root: checkpoints}", "{root: checkpoints}\nprofiles: 3", ("--profile", "p"), "GB005"),
    ("{root: checkpoints}", "3", (), "GB005"),
    ("checkpoints: ${root}", "checkpoints: ${nope}", (), "GB010"),
    ("checkpoints: ${root}", "checkpoints: 3", (), "GB005"),
    ("checkpoints: ${root}", "checkpoints: !there", (), "GB007"),
    ("checkpoints: ${root}", "checkpoints: there\ncheckpoints: here", (), "GB003"),
    ("checkpoints: ${root}", "checkpoint: ${root}", (), "GB004"),
    ("pipeline: clicks", 'pipeline: "a b"', (), "GB017"),
    ("pipeline: clicks", "description: clicks", (), "GB006"),
    ("pipeline: clicks", "pipeline: clicks\nmode: bath", (), "GB005"),
    ("table: {", "table: {was: '${nope}', ", (), "GB010"),
    ("table: {", "table: {group: 3, ", ("--target", "table"), "GB005"),
    ("table: {gem: file, input: numbers", "table: {gem: file", ("--target", "table"), "GB006"),
]


@pytest.mark.parametrize(("old", "new", "arguments", "code"), UNDECIDED)
def test_what_decides_where_checkpoints_lie_has_to_be_right(
    cli: Cli, clicks: Path, old: str, new: str, arguments: tuple[str, ...], code: str
) -> None:
    text = PIPELINE.replace(old, new, 1)
    assert text != PIPELINE or not old
    clicks.write_text(text)
    result = cli("checkpoint", "show", "clicks.yaml", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"error[{code}]" in result.stderr
    planned = cli("plan", "clicks.yaml", *arguments).stderr
    assert [line for line in result.stderr.splitlines() if line not in planned.splitlines()] == []


HARMLESS: list[tuple[str, str, tuple[str, ...]]] = [
    ("targets:", "transforms:\n  t: {gem: nothing, inputs: 3, options: {x: '${nope}'}}\ntargets:", ()),
    ("schema: ", "more: '${env:GEM_BUNDLE_ABSENT}', schema: ", ()),
    ("checkpoints}", "checkpoints, n: {type: integer}}", ()),
    (
        "checkpoints}",
        "checkpoints}\nprofiles: {p: {root: checkpoints}, q: {rot: 3}, r: 3}",
        ("--profile", "p"),
    ),
    ("checkpoints}", "checkpoints, n: 1}\nprofiles: {p: {n: x}}", ("--profile", "p")),
    ("pipeline: clicks", "pipeline: clicks\nversion: [1]\nzzz: 3", ()),
    ("other: {", "other: {group: '${nope}', ", ("--target", "table")),
    ("other: {gem: file, input: numbers", "other: {gem: file, gem: file", ()),
]


@pytest.mark.parametrize(("old", "new", "arguments"), HARMLESS)
def test_what_is_wrong_elsewhere_keeps_nobody_from_looking(
    cli: Cli, clicks: Path, old: str, new: str, arguments: tuple[str, ...]
) -> None:
    clicks.write_text(PIPELINE.replace(old, new, 1))
    assert cli("check", "clicks.yaml").exit_code == 1
    assert "next micro-batch 6: all that were begun are done" in told(cli, "clicks.yaml", *arguments)


def test_errors_are_json_too(cli: Cli, clicks: Path) -> None:
    for arguments, status, code in [
        (("absent.yaml",), 1, "GB001"),
        (("clicks.yaml", "--target", "tabel"), 1, "GB108"),
        (("clicks.yaml", "--profile", "prdo"), 1, "GB013"),
    ]:
        result = cli("checkpoint", "show", *arguments, "--format", "json")
        found = json.loads(result.stdout)
        assert (result.exit_code, result.stderr) == (status, "")
        assert (found["ok"], found["targets"]) == (False, {})
        assert [diagnostic["code"] for diagnostic in found["diagnostics"]] == [code]
    assert (
        json.loads(cli("checkpoint", "show", "clicks.yaml", "--format", "json").stdout)["diagnostics"] == []
    )
    (clicks.parent / "checkpoints/clicks/table/offsets/5").write_text("v1\n{")
    found = json.loads(cli("checkpoint", "show", "clicks.yaml", "--format", "json").stdout)
    assert [diagnostic["code"] for diagnostic in found["diagnostics"]] == ["GB402"]
    assert found["diagnostics"] == found["targets"]["table"]["diagnostics"]


def test_a_batch_keeps_no_checkpoint(cli: Cli, clicks: Path) -> None:
    clicks.write_text(PIPELINE.replace("clicks", "clicks\nmode: batch", 1))
    lines = told(cli, "clicks.yaml")
    none = "A batch target keeps no checkpoint: each run reads all that there is."
    # What a stream has left is told all the same.
    assert "next micro-batch 6: all that were begun are done" in lines
    assert lines[-2:] == ["other", none]
    assert told(cli, "clicks.yaml", "-p", "root=wasbs://box@account/c")[-1] == none


def test_a_target_that_is_no_more_is_shown_as_long_as_something_of_it_is_there(
    cli: Cli, clicks: Path
) -> None:
    clicks.write_text(PIPELINE.replace("  table:", "  new:"))
    lines = told(cli, "clicks.yaml", "--target", "table")
    place = f"place {clicks.parent}/checkpoints/clicks/table"
    gone = "target no more in the pipeline; its checkpoint"
    assert lines[:3] == ["table", place, f"{gone} stays"]
    assert "next micro-batch 6: all that were begun are done" in lines
    assert not [line for line in told(cli, "clicks.yaml", "--target", "new") if "6" in line]
    both = told(cli, "clicks.yaml", "--target", "table", "--target", "other")
    assert (both[0], both[-len(lines) :]) == ("other", lines)
    version = replace(VERSION, first_batch=0, accepted=(), continues="")
    write_record(place.removeprefix("place "), Record("table", (version,)))
    shutil.rmtree(clicks.parent / "checkpoints/clicks/table")
    lines = told(cli, "clicks.yaml", "--target", "table")
    assert lines[:3] == ["table", place, f"{gone} isn't there to be seen, and its record stays"]
    assert lines[3].startswith("history from micro-batch 0: version 1.0.0")
    for name in ("tabel", "numbers", "../clicks"):
        wrong = cli("checkpoint", "show", "clicks.yaml", "--target", "table", "--target", name)
        assert (wrong.exit_code, wrong.stdout) == (1, "")
        assert "GB108" in wrong.stderr


def test_a_target_that_has_left_its_group_is_shown_with_the_checkpoint_of_that(
    cli: Cli, clicks: Path
) -> None:
    folder = clicks.parent / "checkpoints/clicks"
    clicks.write_text(PIPELINE.replace("other: {", "other: {group: both, "))
    (folder / "table").rename(folder / "both")
    write_record(f"{folder}/both.old", Record("old", (replace(VERSION, first_batch=0),)))
    gone = "target no more in the pipeline; the checkpoint of its group stays"
    assert told(cli, "clicks.yaml", "--target", "old")[:3] == ["old", f"place {folder}/both", gone]
    assert "GB108" in cli("checkpoint", "show", "clicks.yaml", "--target", "both").stderr


def test_spark_is_not_started(cli: Cli, clicks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert cli("checkpoint", "show", "clicks.yaml").exit_code == 0
