"""`gem-bundle plan` of targets that are called otherwise, and of those that are no more."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.core.cli.left_by_runs import left_by_a_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Cli = Callable[..., Result]

GROUPED = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  some: {gem: filter, input: clicks, options: {condition: n > 0}}
targets:
  one: {gem: delta, input: some, group: both, options: {path: one}}
  two: {gem: delta, input: clicks, group: both, options: {path: two}}
"""
RENAMED = GROUPED.replace("  one: {", "  uno: {")


def written(folder: Path, text: str, name: str = "shop.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def planned(cli: Cli, folder: Path, text: str) -> dict[str, Any]:
    """What is said of each target of a pipeline that comes in the place of what has run."""
    result = cli("plan", str(written(folder, text)), "--format", "json")
    found: dict[str, Any] = json.loads(result.stdout)["targets"]
    return found


def told(target: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change["verdict"], change["code"]) for change in target["changes"]]


def test_a_target_of_a_group_goes_on_under_another_id(cli: Cli, tmp_path: Path) -> None:
    left_by_a_run(written(tmp_path, GROUPED))
    (change,) = planned(cli, tmp_path, RENAMED)["uno"]["changes"]
    assert (change["verdict"], change["code"]) == ("continues", "GB443")
    assert "goes on with the checkpoint of its group" in change["message"]
    assert change["hint"] == "Write `was: one` at `uno` if it is the same target."
    found = planned(cli, tmp_path, RENAMED.replace("n > 0", "n > 1"))
    assert told(found["uno"]) == [("continues", "GB443"), ("from_now_on", "GB423")]
    assert told(found["two"]) == []


def test_where_it_may_have_a_part_of_a_micro_batch_that_comes_once_more(cli: Cli, tmp_path: Path) -> None:
    left_by_a_run(written(tmp_path, GROUPED))
    checkpoint = tmp_path / "checkpoints/shop/both"
    (checkpoint / "offsets/1").write_text((checkpoint / "offsets/0").read_text())
    found = planned(cli, tmp_path, RENAMED)["uno"]
    assert told(found) == [("again", "GB443")]
    assert "micro-batch 1 was begun and isn't done" in found["changes"][0]["message"]


def test_another_target_joins_the_group(cli: Cli, tmp_path: Path) -> None:
    left_by_a_run(written(tmp_path, GROUPED))
    (change,) = planned(cli, tmp_path, RENAMED.replace("path: one", "path: uno"))["uno"]["changes"]
    assert (change["verdict"], change["code"]) == ("skipped", "GB447")
    assert change["hint"].startswith(
        "Write `was: one` at `uno` if it is the same target. Else give the group"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RENAMED, [("continues", "GB443")]),
        (RENAMED.replace("n > 0", "n > 1"), [("continues", "GB443"), ("from_now_on", "GB423")]),
    ],
)
def test_against_another_version(
    cli: Cli, tmp_path: Path, text: str, expected: list[tuple[str, str]]
) -> None:
    before, after = written(tmp_path, GROUPED, "before.yaml"), written(tmp_path, text)
    result = cli("plan", str(after), "--against", str(before), "--format", "json")
    assert told(json.loads(result.stdout)["targets"]["uno"]) == expected


GONE = GROUPED.replace("  one: {gem: delta, input: some, group: both, options: {path: one}}\n", "")


def test_what_stays_of_a_target_that_is_no_more(cli: Cli, tmp_path: Path) -> None:
    alone = GROUPED.replace(", group: both", "")
    left_by_a_run(written(tmp_path, alone))
    without = GONE.replace(", group: both", "")
    (change,) = planned(cli, tmp_path, without)["one"]["changes"]
    assert change["message"] == "target `one` is no more; its checkpoint stays"
    shutil.rmtree(tmp_path / "checkpoints/shop/one")
    record = tmp_path / "checkpoints/shop/.one.record.json"
    (change,) = planned(cli, tmp_path, without)["one"]["changes"]
    assert change["verdict"] == "gone"
    assert f"its checkpoint is gone too, and its record stays, {record}" in change["message"]
    record.unlink()
    assert "one" not in planned(cli, tmp_path, without)


def test_a_target_of_a_group_had_the_checkpoint_of_the_group(cli: Cli, tmp_path: Path) -> None:
    left_by_a_run(written(tmp_path, GROUPED))
    (change,) = planned(cli, tmp_path, GONE)["one"]["changes"]
    assert change["message"] == "target `one` is no more; the checkpoint of its group stays"
    before, after = written(tmp_path, GROUPED, "before.yaml"), written(tmp_path, GONE)
    result = cli("plan", str(after), "--against", str(before), "--format", "json")
    (against,) = json.loads(result.stdout)["targets"]["one"]["changes"]
    assert against["message"] == change["message"]
