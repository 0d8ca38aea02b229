"""`gem-bundle plan --against BUNDLE`: a pipeline that is being edited beside the one that was built."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from click.testing import CliRunner

from gem_bundle.cli import main
from gem_bundler.bundle.manifest import NAME
from tests.bundles.making import built, write_files

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
pipeline: clicks
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "page string, ms int"}}
transforms:
  slow: {gem: filter, input: clicks, options: {condition: ms > 100}}
  clean: {gem: python, input: slow, options: {function: "jobs_of_versions:clean"}}
targets:
  table: {gem: delta, input: clean, options: {path: out}}
"""
JOBS = "def clean(df):\n    return df.where('ms > 0')\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, and beside it the folder of its bundle with the wheel and the archive of the same bytes."""
    folder = write_files(tmp_path / "project", {"clicks.yaml": PIPELINE, "jobs_of_versions.py": JOBS})
    wheel = built(folder, "clicks.yaml")
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / wheel.manifest.wheel).write_bytes(wheel.data)
    (bundle / wheel.manifest.archive).write_bytes(wheel.data)
    with ZipFile(bundle / wheel.manifest.archive) as archive:
        (bundle / NAME).write_bytes(archive.read(f"{wheel.manifest.package}/{NAME}"))
    monkeypatch.chdir(folder)
    return folder


def changes(against: Path) -> list[tuple[str, str, str]]:
    result = CliRunner().invoke(
        main, ["plan", "clicks.yaml", "--against", str(against), "--format", "json"], catch_exceptions=False
    )
    told = json.loads(result.stdout)
    assert [d for d in told["diagnostics"] if d["severity"] == "error"] == []
    return [(c["verdict"], c["code"], c["node"]) for c in told["targets"]["table"]["changes"]]


def test_an_edit_is_compared_with_the_folder_and_with_the_wheel(project: Path) -> None:
    bundle = project.parent / "bundle"
    (wheel,) = bundle.glob("*.whl")
    assert changes(bundle) == changes(wheel) == []
    (project / "clicks.yaml").write_text(PIPELINE.replace("ms > 100", "ms > 200"))
    assert ("GB423", "slow") in {(code, node) for _, code, node in changes(bundle)}
    assert changes(bundle) == changes(wheel)


def test_code_is_compared_with_the_code_in_the_bundle(project: Path) -> None:
    (project / "jobs_of_versions.py").write_text(JOBS.replace("ms > 0", "ms > 1"))
    assert [(code, node) for _, code, node in changes(project.parent / "bundle")] == [("GB424", "clean")]


def test_what_is_no_bundle_or_has_another_pipeline_is_told(project: Path) -> None:
    def told(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["plan", *arguments])
        assert result.exit_code == 1
        return result.stderr

    bundle = project.parent / "bundle"
    (project / "other.yaml").write_text(PIPELINE.replace("pipeline: clicks", "pipeline: others"))
    assert "error[GB630]: the bundle" in told("other.yaml", "--against", str(bundle))
    assert "has no pipeline `others`" in told("other.yaml", "--against", str(bundle))
    (archive,) = bundle.glob("*.zip")
    archive.write_bytes(archive.read_bytes()[:100])
    assert "can't be read (BadZipFile" in told("clicks.yaml", "--against", str(archive))
    assert "error[GB001]" in told("clicks.yaml", "--against", str(project.parent))
