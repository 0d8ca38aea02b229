"""`gem-bundle plan`: text, JSON and Markdown, and the exit status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.record import Record, write_record
from gem_bundle.check import check_file
from gem_bundle.pipeline.loader import LoadOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Cli = Callable[..., Result]

TEXT = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  some: {gem: filter, input: clicks, options: {condition: n > 0}}
  counts: {gem: aggregate, input: some, options: {group_by: [page], aggregates: {n: count(*)}}}
targets:
  all: {gem: file, input: some, options: {format: json, path: all}}
  out: {gem: console, input: counts, output_mode: update}
"""


def written(folder: Path, text: str, name: str = "shop.yaml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def left_by_a_run(file: Path) -> None:
    """What a run of each target leaves: a checkpoint with one micro-batch, and the record beside it."""
    plan = check_file(str(file), LoadOptions(environment={})).plan
    assert plan is not None
    for node in plan.definition.of_kind("target"):
        location = plan.definition.checkpoint(node.id)
        for name, content in {
            "metadata": '{"id": "q"}',
            "offsets/0": 'v2\n{"batchWatermarkMs": 0, "conf": {}}\nclicks:{"logOffset": 0}',
            "commits/0": 'v1\n{"nextBatchWatermarkMs": 0}',
        }.items():
            path = file.parent / location / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        write_record(location, Record(node.id, (version_of(plan, node.id),), "q"))


def test_nothing_has_changed(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    result = cli("plan", str(file))
    assert result.exit_code == 0, result.output
    assert "target all: same" in result.stdout
    assert result.stdout.splitlines()[-1] == f"{file}: 2 same. Nothing has changed."


def test_every_change_is_told_at_its_line(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    written(tmp_path, TEXT.replace("n > 0", "n > 1"))
    result = cli("plan", str(file))
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "target all: from_now_on"
    assert lines[1].startswith(f"  {file}:5:")
    assert "from_now_on[GB423]: transform `some`: `condition` was `n > 0` and is `n > 1`" in lines[1]
    assert any("mixed[GB423]" in line and "the state of `counts`" in line for line in lines)
    assert lines[-1].startswith(f"{file}: 1 mixed, 1 from_now_on. ")
    assert cli("plan", str(file), "--target", "all").exit_code == 0


def test_as_json(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    written(tmp_path, TEXT.replace("n > 0", "n > 1"))
    result = cli("plan", str(file), "--format", "json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["ok"] is False
    assert {found["severity"] for found in content["diagnostics"]} <= {"warning", "note"}
    assert content["targets"]["out"]["verdict"] == "mixed"
    (change,) = content["targets"]["all"]["changes"]
    assert {key: change[key] for key in ("verdict", "node", "path", "line", "code", "before", "after")} == {
        "verdict": "from_now_on",
        "node": "some",
        "path": ["transforms", "some", "options", "condition"],
        "line": 5,
        "code": "GB423",
        "before": "n > 0",
        "after": "n > 1",
    }
    assert set(change) == {"verdict", "node", "path", "line", "code", "message", "hint", "before", "after"}


def test_as_markdown_against_another_version(cli: Cli, tmp_path: Path) -> None:
    before = written(tmp_path, TEXT, "before.yaml")
    file = written(tmp_path, TEXT.replace("n > 0", "n > 1"))
    result = cli("plan", str(file), "--against", str(before), "--markdown")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"### ❌ `{file}`: mixed\n")
    assert "| from_now_on | 5 | GB423 | transform `some`: " in result.stdout


def test_a_first_run_says_from_where_it_reads(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    result = cli("plan", str(file))
    assert result.exit_code == 0
    assert "new[GB444]: target `all` has no checkpoint yet: `clicks` from its beginning" in result.stdout


def test_a_target_that_is_no_more(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    written(tmp_path, TEXT.replace("  out: {gem: console, input: counts, output_mode: update}\n", ""))
    result = cli("plan", str(file))
    assert result.exit_code == 0
    assert "gone[GB445]: target `out` is no more; its checkpoint stays" in result.stdout


def test_a_damaged_record_is_told(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    (tmp_path / "checkpoints" / "shop" / ".out.record.json").write_text("{", encoding="utf-8")
    result = cli("plan", str(file))
    assert result.exit_code == 1
    assert "GB404" in result.stderr


def test_wrong_use(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    assert cli("plan", str(file), "--markdown", "--format", "json").exit_code == 2
    assert cli("plan").exit_code == 2
    result = cli("plan", str(file), "--target", "nothing")
    assert result.exit_code == 1
    assert "GB108" in result.stderr


def test_a_pipeline_with_errors_has_no_plan(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT.replace("gem: filter", "gem: filtre"))
    result = cli("plan", str(file), "--format", "json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["targets"] == {}
    assert "GB201" in [found["code"] for found in content["diagnostics"]]
