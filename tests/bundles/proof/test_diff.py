"""What changed between two bundles, in words and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundler.bundle.model import GemUse
from gem_bundler.proof.diff import Change, diff, to_json, to_text
from tests.bundles.making import ACME, CLEAN, DELTA, JOBS, PLUGGY, RUNTIME, TICKS, built, write_files

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundler.bundle.manifest import Manifest

EVENTS = """\
pipeline: ticks
version: 1.0.0
parameters:
  delay: 10 minutes
sources:
  ticks: {gem: rate, options: {rows_per_second: 5}}
transforms:
  timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: "${delay}"}}
  named: {gem: select, input: timely, options: {columns: {a: value, b: timestamp}}}
targets:
  screen: {gem: console, input: named}
"""


def manifest(folder: Path, text: str = EVENTS, **changes: Any) -> Manifest:
    folder.mkdir(exist_ok=True, parents=True)
    return built(write_files(folder, {"ticks.yaml": text, "jobs.py": JOBS}), **changes).manifest


def changes(folder: Path, old: str, new: str) -> list[Change]:
    """What changed but for the version, which always does."""
    found = diff(manifest(folder / "old", old), manifest(folder / "new", new))
    assert [change.path for change in found if change.area == "bundle"] in ([("version",)], [])
    return [change for change in found if change.area != "bundle"]


def test_the_same_bundle_has_no_changes(tmp_path: Path) -> None:
    one = manifest(tmp_path)

    assert diff(one, one) == []
    assert to_text([]) == ""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("rows_per_second: 5", "rows_per_second: 7", "~ sources.ticks.options.rows_per_second: 5 → 7"),
        ("rows_per_second: 5", "rowsPerSecond: 7", "~ sources.ticks.options.rows_per_second: 5 → 7"),
        ("rows_per_second: 5", "", "- sources.ticks.options.rows_per_second: 5"),
        (
            "rows_per_second: 5",
            "rows_per_second: 5, num_partitions: 2",
            "+ sources.ticks.options.num_partitions: 2",
        ),
        ('delay: "${delay}"', "delay: 1 hour", "~ transforms.timely.options.delay: ${delay} → 1 hour"),
        ("delay: 10 minutes", "delay: 20 minutes", "~ parameters.delay.default: 10 minutes → 20 minutes"),
        ("gem: console", "gem: memory", "~ targets.screen.gem: console → memory"),
        ("input: named}", "input: timely}", '~ targets.screen.inputs: ["named"] → ["timely"]'),
        (
            "input: named}",
            "input: named, trigger: {available_now: true}}",
            "+ targets.screen.trigger.available_now: true",
        ),
        (
            "input: named}",
            "input: named, output_mode: update}",
            "~ targets.screen.output_mode: append → update",
        ),
        (
            "{a: value, b: timestamp}",
            "{b: timestamp, a: value}",
            '~ transforms.named.options.columns.(order): ["a", "b"] → ["b", "a"]',
        ),
        ("sources:", "spark: {spark.ui.enabled: false}\nsources:", "+ spark.spark.ui.enabled: false"),
        ("sources:", "checkpoints: state\nsources:", "~ checkpoints: checkpoints → state"),
        (
            "pipeline: ticks",
            "pipeline: ticks\nprofiles: {prod: {delay: 1 day}}",
            '+ profiles.prod: {"delay": "1 day"}',
        ),
    ],
)
def test_a_change_of_a_pipeline_is_one_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in EVENTS

    (found,) = changes(tmp_path, EVENTS, EVENTS.replace(old, new))

    assert found.area == "pipeline ticks"
    assert str(found) == expected


def test_nodes_that_come_and_go(tmp_path: Path) -> None:
    new = EVENTS.replace(
        "  named: {gem: select, input: timely", "  chosen: {gem: select, input: timely"
    ).replace("input: named", "input: chosen")

    found = changes(tmp_path, EVENTS, new)

    assert [(change.kind, ".".join(change.path)) for change in found] == [
        ("removed", "transforms.named"),
        ("added", "transforms.chosen"),
        ("changed", "targets.screen.inputs"),
    ]
    assert found[1].new["gem"] == "select"


def test_comments_and_the_order_of_nodes_are_no_changes_of_the_pipeline(tmp_path: Path) -> None:
    assert changes(tmp_path, EVENTS, "# new\n" + EVENTS) == []


def test_another_spelling_of_a_value_is_a_change(tmp_path: Path) -> None:
    (found,) = changes(
        tmp_path,
        EVENTS.replace("delay: 10 minutes", "delay: 1"),
        EVENTS.replace("delay: 10 minutes", "delay: true"),
    )[:1]

    assert found.path[:2] == ("parameters", "delay")


def test_everything_around_the_pipeline(tmp_path: Path) -> None:
    rate, sheep = (
        GemUse("source", "rate", "gem-bundle", "0.1.0"),
        GemUse("source", "sheep", "acme-gems", "1.0"),
    )
    old = manifest(
        tmp_path / "old", gems=(rate,), distributions=(PLUGGY,), job={"retries": 3, "tags": {"a": "b"}}
    )
    new = manifest(
        tmp_path / "new",
        EVENTS.replace("1.0.0", "1.1.0"),
        gems=(rate, sheep),
        distributions=(replace(PLUGGY, version="1.7.0"), ACME),
        jars=(DELTA,),
        vendored=True,
        deps="deps.tar.gz",
        runtime=replace(RUNTIME, python="3.12"),
        job={"retries": 4, "tags": {"a": "b"}},
        profile="prod",
    )

    assert to_text(diff(old, new)).splitlines() == [
        "bundle",
        f"  ~ version: {old.version} → {new.version}",
        "  ~ profile: nothing → prod",
        "  ~ python: 3.11 → 3.12",
        "  ~ dependencies: installed by the cluster → in the bundle",
        "  ~ jar_files: fetched by the cluster → in the bundle",
        "job",
        "  ~ retries: 3 → 4",
        "gems",
        "  + source sheep: acme-gems",
        "distributions",
        "  ~ pluggy: 1.6.0 (aaaaaaaaaaaa) → 1.7.0 (aaaaaaaaaaaa)",
        "  + acme-gems: 1.0+editable (bbbbbbbbbbbb)",
        "jars",
        "  + io.delta:delta-spark_4.2_2.13: 4.4.0 (cccccccccccc)",
    ]


def test_modules_that_changed(tmp_path: Path) -> None:
    old = built(write_files(tmp_path / "old", {"ticks.yaml": CLEAN, "jobs.py": JOBS})).manifest
    new = built(
        write_files(tmp_path / "new", {"ticks.yaml": CLEAN, "jobs.py": "import rules\n", "rules.py": ""})
    ).manifest

    found = [change for change in diff(old, new) if change.area == "modules"]

    assert [(change.kind, change.path) for change in found] == [
        ("changed", ("jobs.py",)),
        ("added", ("rules.py",)),
    ]


def test_pipelines_that_come_and_go(tmp_path: Path) -> None:
    tocks = TICKS.replace("pipeline: ticks", "pipeline: tocks")
    write_files(tmp_path, {"ticks.yaml": TICKS, "tocks.yaml": tocks})
    one = built(tmp_path, "ticks.yaml").manifest
    both = built(tmp_path, "ticks.yaml", "tocks.yaml").manifest

    assert Change("pipeline tocks", "added", ("tocks.yaml",)) in diff(one, both)
    assert Change("pipeline tocks", "removed", ("tocks.yaml",)) in diff(both, one)
    assert "+ tocks.yaml" in to_text(diff(one, both))


SECRETS = """\
pipeline: ticks
parameters:
  db_password: SWORDFISH
profiles:
  prod: {{db_password: SWORDFISH}}
spark:
  spark.hadoop.fs.s3a.secret.key: SWORDFISH
sources:
  ticks:
    gem: kafka
    options:
      bootstrap_servers: localhost:9092
      subscribe: ticks
      ssl_key_password: SWORDFISH
      spark_options: {{kafka.sasl.jaas.config: SWORDFISH}}
targets:
  screen: {{gem: console, input: ticks}}
"""


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    old = SECRETS.format().replace("SWORDFISH", "swordfish")
    new = SECRETS.format().replace("SWORDFISH", "tunafish")

    for found in (changes(tmp_path, old, new), changes(tmp_path / "more", TICKS, new)):
        said = to_text(found) + to_json(found)
        assert found
        assert "swordfish" not in said
        assert "tunafish" not in said
        assert "**********" in said


def test_references_to_secrets_are_shown(tmp_path: Path) -> None:
    old = SECRETS.format().replace("SWORDFISH", '"${secret:a/b}"')
    new = SECRETS.format().replace("SWORDFISH", '"${secret:a/c}"')

    found = changes(tmp_path, old, new)

    assert "~ sources.ticks.options.ssl_key_password: ${secret:a/b} → ${secret:a/c}" in map(str, found)
    assert "+ secrets.a/c" in map(str, found)


def test_json_has_every_change(tmp_path: Path) -> None:
    found = changes(tmp_path, EVENTS, EVENTS.replace("rows_per_second: 5", ""))

    assert json.loads(to_json(found)) == {
        "changes": [
            {
                "area": "pipeline ticks",
                "kind": "removed",
                "path": ["sources", "ticks", "options", "rows_per_second"],
                "old": 5,
            }
        ]
    }


def test_long_values_are_cut_in_the_text_only() -> None:
    change = Change("job", "changed", ("text",), "a" * 1000, "b\nb")

    assert str(change).endswith("… → b b")
    assert len(str(change)) < 200
    assert change.as_dict()["old"] == "a" * 1000
