"""A plan of targets whose checkpoint isn't where it was, and against versions that lie in another folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.changes.planning import hold_to_plan
from gem_bundle.errors import PipelineError
from tests.checked import plan_of
from tests.core.cli.left_by_runs import left_by_a_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Cli = Callable[..., Result]

TO_KAFKA = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  counts: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {n: count(*)}}}
  told: {gem: select, input: counts, options: {columns: [page as value]}}
targets:
  out: {gem: kafka, input: told, output_mode: update, options: {bootstrap_servers: "b:9092", topic: counts}}
"""
RENAMED = TO_KAFKA.replace("  out: {", "  counted: {")


def written(folder: Path, text: str, name: str = "shop.yaml") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def planned(cli: Cli, *arguments: object) -> dict[str, Any]:
    """The targets of a plan."""
    result = cli("plan", *map(str, arguments), "--format", "json")
    content: dict[str, Any] = json.loads(result.stdout)
    assert all(found["severity"] != "error" for found in content["diagnostics"]), content["diagnostics"]
    return content["targets"]  # type: ignore[no-any-return]


def told(target: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change["verdict"], change["code"]) for change in target["changes"]]


def test_a_target_with_another_id_is_known_by_where_it_writes(cli: Cli, tmp_path: Path) -> None:
    left_by_a_run(written(tmp_path, TO_KAFKA))
    file = written(tmp_path, RENAMED)
    targets = planned(cli, file)
    assert told(targets["counted"]) == [("again", "GB435")]
    (change,) = targets["counted"]["changes"]
    assert change["message"].startswith("target `out` is called `counted` now and has no checkpoint under")
    assert change["hint"] == "Write `was: out` at `counted` if it is the same target."
    assert told(targets["out"]) == [("gone", "GB445")]
    with pytest.raises(PipelineError, match="is called `counted` now"):
        hold_to_plan(plan_of(file), ["counted"])
    hold_to_plan(plan_of(file), ["counted"], [("GB435", "counted")])


@pytest.mark.parametrize(
    "edited",
    [
        RENAMED.replace("topic: counts", "topic: others"),
        RENAMED.replace("output_mode: update", "output_mode: complete"),
        TO_KAFKA.replace("out: {gem", "counted: {was: out, gem"),
    ],
    ids=["another place", "all is written anew", "it says what it was"],
)
def test_a_target_that_repeats_nothing(cli: Cli, tmp_path: Path, edited: str) -> None:
    left_by_a_run(written(tmp_path, TO_KAFKA))
    assert planned(cli, written(tmp_path, edited))["counted"]["verdict"] in {"new", "continues"}


@pytest.mark.parametrize(
    "edited",
    [
        TO_KAFKA.replace("pipeline: shop", "pipeline: store"),
        TO_KAFKA.replace("sources:", "checkpoints: elsewhere\nsources:", 1),
    ],
)
def test_a_checkpoint_in_another_place_is_a_new_one(cli: Cli, tmp_path: Path, edited: str) -> None:
    former = written(tmp_path, TO_KAFKA, "before.yaml")
    targets = planned(cli, written(tmp_path, edited), "--against", former)
    assert told(targets["out"]) == [("again", "GB435")]
    (change,) = targets["out"]["changes"]
    assert change["before"] == str(tmp_path / "checkpoints/shop/out")
    assert change["message"].startswith(f"target `out` had its checkpoint at {change['before']}, and gets")
    other = written(tmp_path, edited.replace("topic: counts", "topic: others"), "other.yaml")
    assert told(planned(cli, other, "--against", former)["out"]) == [("new", "GB444")]
    complete = written(tmp_path, edited.replace("update", "complete"), "complete.yaml")
    assert told(planned(cli, complete, "--against", former)["out"]) == [("new", "GB444")]


FILES = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  changed: {gem: python, input: clicks, options: {function: "steps:change"}}
targets:
  out: {gem: file, input: changed, options: {format: json, path: out}}
"""
STEPS = """def change(df):
    return df
"""
SETTINGS = "[spark]\n'spark.sql.shuffle.partitions' = 7\n"


def project(folder: Path, text: str = FILES, steps: str = STEPS, settings: str = SETTINGS) -> Path:
    """A whole project; where it is."""
    file = written(folder, text)
    if steps:
        (folder / "steps.py").write_text(steps)
    if settings:
        (folder / "gem-bundle.toml").write_text(settings)
    return file


def test_a_version_in_another_folder_ran_in_this_one(cli: Cli, tmp_path: Path) -> None:
    """Where a reviewer has a copy of it: of the whole project, or of the file alone."""
    file = project(tmp_path / "now")
    whole = project(tmp_path / "whole")
    alone = written(tmp_path / "alone", FILES)
    for former in (whole, alone):
        assert planned(cli, file, "--against", former)["out"]["verdict"] == "same"


def test_a_whole_project_has_its_own_functions_and_settings(cli: Cli, tmp_path: Path) -> None:
    file = project(tmp_path / "now")
    whole = project(
        tmp_path / "whole",
        steps=STEPS.replace("return df", "return df.na.drop()"),
        settings=SETTINGS.replace("7", "9"),
    )
    target = planned(cli, file, "--against", whole)["out"]
    assert {code for _, code in told(target)} == {"GB424", "GB440"}


def test_a_file_alone_without_settings_anywhere_has_the_functions_of_this_one(
    cli: Cli, tmp_path: Path
) -> None:
    file = project(tmp_path / "now", settings="")
    alone = written(tmp_path / "alone", FILES)
    assert planned(cli, file, "--against", alone)["out"]["verdict"] == "same"


def test_the_other_version_is_given_what_it_knows(cli: Cli, tmp_path: Path) -> None:
    known = "parameters:\n  least: {type: integer, default: 1}\n  new: {type: integer, default: 1}\nprofiles:\n  p: {new: 3}\n"
    head, rest = TO_KAFKA.split("\n", 1)
    rest = rest.replace("path: data", "path: 'data${least}'")
    file = written(tmp_path, f"{head}\n{known}{rest}")
    former = written(
        tmp_path, f"{head}\nparameters:\n  least: {{type: integer, default: 1}}\n{rest}", "before.yaml"
    )
    given = ("-p", "new=5", "-p", "least=4", "--profile", "p")
    assert planned(cli, file, "--against", former, *given)["out"]["verdict"] == "same"
    former.write_text(former.read_text().replace("parameters:\n", "profiles: 5\nparameters:\n"))
    result = cli("plan", str(file), "--against", str(former), *given, "--format", "json")
    assert result.exit_code == 1
    assert "`profiles` must be a mapping" in result.stdout


def test_a_whole_project_has_functions_that_are_no_more(cli: Cli, tmp_path: Path) -> None:
    file = project(
        tmp_path / "now", FILES.replace("steps:change", "steps:drop"), STEPS.replace("change", "drop")
    )
    target = planned(cli, file, "--against", project(tmp_path / "whole"))["out"]
    assert told(target) == [("mixed", "GB423")]
