"""bundle.json: what it says, what damages it, and the fingerprint of a pipeline."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from gem_bundle.errors import PipelineError
from gem_bundle.gem import Source
from gem_bundle.options import Field, Options
from gem_bundle.pipeline.loader import read_file
from gem_bundle.pipeline.secrets import HIDDEN
from gem_bundle.plugins import GemEntry, Origin, Registry, load_registry
from gem_bundle.types import FunctionReference, SecretStr
from gem_bundler.bundle.manifest import (
    NAME,
    SIGNATURE,
    Manifest,
    check_contents,
    check_files,
    parse,
    read,
    write,
)
from gem_bundler.bundle.model import FORMAT, Bundle
from gem_bundler.bundle.option_values import FUNCTION, SECRET, values_of
from gem_bundler.bundle.written import describe
from tests.bundles.making import ACME, CLEAN, DELTA, JOBS, PLUGGY, TICKS, built, draft, load, write_files

PROFILES = "parameters: {team: clocks}\nprofiles:\n  prod: {team: bells}\n"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A folder with some files and their manifest."""
    project = write_files(tmp_path / "project", {"ticks.yaml": PROFILES + CLEAN, "jobs.py": JOBS})
    folder = write_files(tmp_path / "bundle", {"main.py": "pass\n", "databricks/job.json": "{}\n"})
    wheel = built(project, distributions=(PLUGGY, ACME), jars=(DELTA,), job={"retries": 3})
    (folder / wheel.name).write_bytes(wheel.data)
    write(folder, wheel.manifest)
    return folder


def refused(folder: Path) -> Any:
    with pytest.raises(PipelineError) as caught:
        read(folder)
    (found,) = caught.value.diagnostics
    assert found.is_error
    assert found.hint
    return found


# Written and read


def test_what_is_written_is_what_is_read(bundle: Path) -> None:
    manifest = read(bundle)

    assert [file.path for file in manifest.files] == [
        "databricks/job.json",
        "main.py",
        manifest.wheel,
    ]
    assert manifest.distributions == (PLUGGY, ACME)
    assert manifest.jars == (DELTA,)
    assert manifest.job == {"retries": 3}
    assert parse(manifest.to_json()) == manifest
    assert (bundle / NAME).read_bytes() == manifest.to_json()


def test_writing_again_gives_the_same_bytes(bundle: Path) -> None:
    before = (bundle / NAME).read_bytes()
    (bundle / SIGNATURE).write_text("{}")
    write(bundle, read(bundle))

    assert (bundle / NAME).read_bytes() == before


def test_job_definitions_see_the_same_facts(bundle: Path) -> None:
    manifest = read(bundle)
    seen = manifest.bundle()

    assert isinstance(seen, Bundle)
    assert seen.version == manifest.version
    assert seen.pipelines == manifest.pipelines
    assert seen.wheel == manifest.wheel
    assert seen.profiles == ("prod",)


def test_every_fact_of_a_bundle_is_in_its_manifest() -> None:
    # What an index hasn't got is a fact of that index, at that time.
    assert set(Bundle.__slots__) - set(Manifest.__slots__) == {"profiles", "missing"}


def test_no_path_of_the_building_machine_is_in_it(bundle: Path, tmp_path: Path) -> None:
    text = (bundle / NAME).read_text(encoding="utf-8")

    assert str(tmp_path) not in text
    assert str(Path.home()) not in text


# Damaged


def test_a_folder_that_isn_t_there_is_no_bundle(tmp_path: Path) -> None:
    found = refused(tmp_path / "nowhere")

    assert found.code == "GB630"
    assert "there is no bundle" in found.message


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    assert refused(tmp_path).code == "GB630"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"format": "1"}',
        b'{"format": 1}',
        b'{"format": 1, "name": 7}',
        b"[" * 100_000,
    ],
)
def test_a_manifest_that_can_t_be_read_is_damage(bundle: Path, data: bytes) -> None:
    (bundle / NAME).write_bytes(data)

    found = refused(bundle)

    assert found.code == "GB630"
    assert found.file == str(bundle / NAME)
    assert "Build the bundle again" in found.hint


@pytest.mark.parametrize("key", ["name", "pipelines", "runtime"])
def test_a_manifest_that_lacks_something_is_damage(bundle: Path, key: str) -> None:
    facts = json.loads((bundle / NAME).read_bytes())
    del facts[key]
    (bundle / NAME).write_text(json.dumps(facts))

    found = refused(bundle)

    assert found.code == "GB630"
    assert key in found.message


@pytest.mark.parametrize(
    ("version", "age", "remedy"),
    [(FORMAT - 1, "older", "Build it again"), (FORMAT + 1, "newer", "Update gem-bundle to 9.9.9")],
)
def test_another_format_is_refused_with_what_reads_it(
    bundle: Path, version: int, age: str, remedy: str
) -> None:
    facts = {"format": version, "runtime": {"gem_bundle": "9.9.9"}, "shape": "unknown"}
    (bundle / NAME).write_text(json.dumps(facts))

    found = refused(bundle)

    assert found.code == "GB631"
    assert age in found.message
    assert "gem-bundle 9.9.9" in found.message
    assert remedy in found.hint


def test_every_file_that_isn_t_what_was_built_is_listed(bundle: Path) -> None:
    manifest = read(bundle)
    assert check_files(bundle, manifest) == []
    (bundle / "main.py").unlink()
    (bundle / "databricks" / "job.json").write_text("[]\n")
    with (bundle / manifest.wheel).open("r+b") as file:
        file.seek(100)
        file.write(b"!")
    write_files(bundle, {"jars/evil.jar": "", "sitecustomize.py": ""})
    (bundle / "link").symlink_to(bundle.parent, target_is_directory=True)

    found = check_files(bundle, manifest)

    assert {diagnostic.code for diagnostic in found} == {"GB630"}
    assert all(diagnostic.is_error and diagnostic.hint for diagnostic in found)
    assert [diagnostic.message for diagnostic in found] == [
        "`databricks/job.json` isn't what was built",
        "`main.py` is missing from the bundle",
        f"`{manifest.wheel}` isn't what was built",
        "`jars/evil.jar` isn't one of the bundle's files",
        "`link` isn't one of the bundle's files",
        "`sitecustomize.py` isn't one of the bundle's files",
    ]


def test_a_file_that_is_a_broken_link_is_damage(bundle: Path) -> None:
    (bundle / "main.py").unlink()
    (bundle / "main.py").symlink_to("nowhere")

    assert [d.message for d in check_files(bundle, read(bundle))] == ["`main.py` is missing from the bundle"]


def test_the_contents_of_a_wheel_are_checked_too(bundle: Path) -> None:
    manifest = read(bundle)
    there = {file.path: b"x" * file.size for file in manifest.contents}
    del there["jobs.py"]

    found = check_contents(manifest, there.get)

    assert "`jobs.py` is missing from the bundle" in [diagnostic.message for diagnostic in found]
    assert "`ticks_bundle/__main__.py` isn't what was built" in [diagnostic.message for diagnostic in found]


class Login(BaseModel):
    user: str = ""
    password: SecretStr | None = None


class ManyOptions(Options):
    one: FunctionReference | None = Field(None, description="One.")
    several: list[FunctionReference] = Field(default_factory=list, description="Several.")
    named: dict[str, FunctionReference] | None = Field(None, description="Named.")
    login: Login | None = Field(None, description="Who.")
    token: SecretStr = Field(SecretStr(""), description="A token.")
    text: str = Field("", description="A text.")


# What is said of a pipeline

FULL = """\
pipeline: ticks
parameters:
  topic: clicks
profiles:
  prod: {topic: orders}
spark:
  spark.sql.shuffle.partitions: 8
  spark.ui.enabled: false
  spark.memory.fraction: 0.60
  spark.app.name: job ${topic}
sources:
  ticks:
    gem: kafka
    options:
      bootstrap_servers: localhost:9092
      subscribe: ${topic}
      startingOffsets: earliest
transforms:
  named: {gem: select, input: ticks, options: {columns: {b: key, a: value}}}
targets:
  screen: {gem: console, input: named}
"""


def described(folder: Path, text: str) -> Any:
    folder.mkdir(exist_ok=True)
    return draft(write_files(folder, {"ticks.yaml": text})).pipelines[0]


def test_references_are_left_open(tmp_path: Path) -> None:
    found = described(tmp_path, FULL)

    assert found.nodes["ticks"]["options"]["subscribe"] == "${topic}"
    assert dict(found.spark) == {
        "spark.app.name": "job ${topic}",
        "spark.memory.fraction": "0.60",
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
    }
    assert found.profiles == {"prod": {"topic": "orders"}}
    assert found.checkpoints == "checkpoints"


def test_options_have_one_spelling(tmp_path: Path) -> None:
    assert list(described(tmp_path, FULL).nodes["ticks"]["options"]) == [
        "bootstrap_servers",
        "starting_offsets",
        "subscribe",
    ]


def test_a_secret_is_never_in_it(tmp_path: Path) -> None:
    text = FULL.replace("startingOffsets: earliest", "sslKeyPassword: swordfish")

    manifest = draft(write_files(tmp_path, {"ticks.yaml": text}))

    assert b"swordfish" not in manifest.to_json()
    assert manifest.pipelines[0].nodes["ticks"]["options"]["ssl_key_password"] == HIDDEN


class Shelf(Source[ManyOptions]):
    """A source with secrets further in."""


def test_a_secret_further_in_is_hidden_too(tmp_path: Path) -> None:
    registry = Registry()
    registry.add(GemEntry("source", "rate", Shelf, Origin("shelf", "shelf", "1")))
    registry.add(load_registry().get("target", "console"))
    options = "{login: {user: ann, password: swordfish}, token: '${env:TOKEN}'}"
    file = write_files(tmp_path, {"ticks.yaml": TICKS.replace("gem: rate", f"gem: rate, options: {options}")})
    (definition,) = load(file, "ticks.yaml")

    found = describe(definition, read_file(file / "ticks.yaml").values, "ticks.yaml", registry)

    assert found.nodes["ticks"]["options"] == {
        "login": {"user": "ann", "password": HIDDEN},
        "token": "${env:TOKEN}",
    }


def test_a_reference_that_stands_for_all_options_is_left_open(tmp_path: Path) -> None:
    text = TICKS.replace("gem: rate", 'gem: rate, options: "${how}"')
    write_files(tmp_path, {"ticks.yaml": "parameters: {how: {rows_per_second: 5}}\n" + text})

    assert draft(tmp_path).pipelines[0].nodes["ticks"]["options"] == {"": "${how}"}


SAME = {
    "a comment": FULL + "# the end\n",
    "line endings": FULL.replace("\n", "\r\n"),
    "a parameter's default": FULL.replace("topic: clicks", "topic: other"),
    "a profile": FULL.replace("topic: orders", "topic: other"),
    "the other spelling of an option": FULL.replace("startingOffsets", "starting_offsets"),
    "the order of options": FULL.replace("      startingOffsets: earliest\n", "").replace(
        "    options:\n", "    options:\n      startingOffsets: earliest\n"
    ),
    "block style": FULL.replace(
        "  screen: {gem: console, input: named}", "  screen:\n    gem: console\n    input: named"
    ),
    "what is the default": FULL.replace("input: named}", "input: named, output_mode: append}"),
    "one input as a list": FULL.replace("input: ticks,", "inputs: [ticks],"),
    "a description": FULL.replace("    gem: kafka", "    description: Where clicks are.\n    gem: kafka"),
    "the version": "version: 3.0.0\n" + FULL,
    "something for other tools": "x-team: clocks\n" + FULL,
}
OTHER = {
    "an option": FULL.replace("earliest", "latest"),
    "an option's type": FULL.replace("startingOffsets: earliest", "minPartitions: 3"),
    "a node's id": FULL.replace("named", "renamed"),
    "a gem": FULL.replace("gem: console", "gem: memory"),
    "the order of columns": FULL.replace("{b: key, a: value}", "{a: value, b: key}"),
    "the output mode": FULL.replace("input: named}", "input: named, output_mode: update}"),
    "the trigger": FULL.replace("input: named}", "input: named, trigger: {once: true}}"),
    "a setting": FULL.replace("partitions: 8", "partitions: 9"),
    "the mode": "mode: batch\n" + FULL,
    "the checkpoints": "checkpoints: elsewhere\n" + FULL,
    "the name": FULL.replace("pipeline: ticks", "pipeline: tocks"),
    "a parameter's type": FULL.replace("topic: clicks", "topic: 1").replace("topic: orders", "topic: 2"),
}


@pytest.mark.parametrize("change", list(SAME))
def test_the_fingerprint_is_the_same_for_the_same_pipeline(tmp_path: Path, change: str) -> None:
    assert SAME[change] != FULL
    first, second = described(tmp_path / "a", FULL), described(tmp_path / "b", SAME[change])

    assert second.fingerprint == first.fingerprint


@pytest.mark.parametrize("change", list(OTHER))
def test_the_fingerprint_is_another_for_another_pipeline(tmp_path: Path, change: str) -> None:
    assert OTHER[change] != FULL
    first, second = described(tmp_path / "a", FULL), described(tmp_path / "b", OTHER[change])

    assert second.fingerprint != first.fingerprint


def test_the_fingerprint_doesn_t_know_where_the_file_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = described(tmp_path / "a", FULL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "GEM_BUNDLE_SECRET_X", "y")

    assert described(Path("b"), FULL).fingerprint == first.fingerprint
    assert len(first.fingerprint) == 64


def test_inputs_with_names_keep_them(tmp_path: Path) -> None:
    text = (
        "pipeline: ticks\nsources:\n  a: {gem: rate}\n  b: {gem: rate, mode: batch}\n"
        "transforms:\n  both: {gem: join, inputs: {left: a, right: b}, options: {on: [value]}}\n"
        "targets:\n  screen: {gem: console, input: both}\n"
    )
    write_files(tmp_path, {"ticks.yaml": text})

    assert draft(tmp_path).pipelines[0].nodes["both"]["inputs"] == ["left: a", "right: b"]


def test_numbers_that_json_hasn_t_got_are_texts(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": "parameters: {a: .inf, b: -.inf, c: .nan}\n" + TICKS})

    manifest = draft(tmp_path)

    assert [parameter.default for parameter in manifest.pipelines[0].parameters] == ["inf", "-inf", "nan"]
    assert parse(manifest.to_json()) == replace(manifest)


# Values of a type, however deep


def test_values_are_found_at_any_depth() -> None:
    options = {
        "one": "a:a",
        "several": ["b:b", "c:c"],
        "named": {"x": "d:d"},
        "login": {"user": "ann", "password": "p"},
        "token": "t",
        "text": "e:e",
        "unknown": "f:f",
    }

    assert dict(values_of(FUNCTION, ManyOptions, options)) == {
        ("one",): "a:a",
        ("several", 0): "b:b",
        ("several", 1): "c:c",
        ("named", "x"): "d:d",
    }
    assert dict(values_of(SECRET, ManyOptions, options)) == {("login", "password"): "p", ("token",): "t"}


def test_values_of_the_wrong_shape_are_passed_over() -> None:
    options = {"several": "b:b", "named": ["d:d"], "login": "ann"}

    assert list(values_of(FUNCTION, ManyOptions, options)) == []
    assert list(values_of(SECRET, ManyOptions, options)) == []
