"""Building bundles from end to end: what comes out, that it is always the same, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest
from click.testing import CliRunner

from gem_bundle.cli import main
from gem_bundle.errors import GemError, PipelineError
from gem_bundler.build import BuildOptions, Built, build
from gem_bundler.proof.signing import generate_keys

if TYPE_CHECKING:
    from collections.abc import Callable

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights"
PIPELINE = """
pipeline: ticks
version: 1.2.0
description: Counts.
parameters:
  rows: {{type: integer}}
  pace: 5 seconds
profiles:
  prod: {{pace: 1 minute}}
{job}
sources: {{ticks: {{gem: rate, options: {{rows_per_second: "${{rows}}"}}}}}}
transforms:
  checked: {{gem: python, input: ticks, options: {{function: "checks:positive"}}}}
targets:
  screen: {{gem: noop, input: checked, trigger: {{processing_time: "${{pace}}"}}}}
"""
MODULE = """
from limits import LOWEST

def positive(ticks):
    return ticks.where(f"value >= {LOWEST}")
"""
JOB = """
job:
  keep_alive: every 10 minutes
  root: /Volumes/main/ticks
  parameters: {rows: 5}
  cluster: {image: "${env:IMAGE}", workers: 2}
"""
THIN = BuildOptions(thin=True)


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Makes a project with a pipeline and the modules that it names."""

    def make(job: str = "", **files: str) -> Path:
        folder = tmp_path / "project"
        folder.mkdir()
        written = {
            "ticks.yaml": PIPELINE.format(job=job),
            "checks.py": MODULE,
            "limits.py": "LOWEST = 3\n",
            **files,
        }
        for name, text in written.items():
            (folder / name).write_text(text)
        (folder / "pyproject.toml").touch()
        return folder

    return make


def made(folder: Path, options: BuildOptions = THIN) -> Built:
    return build([str(folder / "ticks.yaml")], replace(options, output=folder / "dist"))


def codes(error: pytest.ExceptionInfo[PipelineError]) -> list[str]:
    return [found.code for found in error.value.diagnostics if found.is_error]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files}


# What comes out


def test_a_bundle_has_everything(project: Callable[..., Path]) -> None:
    folder = project(JOB.replace("${env:IMAGE}", f"r.example.com/t@sha256:{'a' * 64}"))
    built = made(folder, replace(THIN, platforms=("spark-submit", "kubernetes")))

    name = f"ticks-{built.manifest.version}"
    assert built.folder == folder / "dist" / name
    assert built.manifest.version.startswith("1.2.0+g")
    assert set(hashes(built.folder)) == {
        "bundle.json",
        f"{name}-py3-none-any.whl",
        f"{name}.zip",
        "kubernetes/Dockerfile",
        "kubernetes/apache.yaml",
        "kubernetes/kubeflow.yaml",
        "main.py",
        "sbom.cdx.json",
        "submit.sh",
    }
    with ZipFile(built.folder / f"{name}.zip") as archive:
        inside = set(archive.namelist())
    assert {"checks.py", "limits.py", "ticks_bundle/project/ticks.yaml", "ticks_bundle/py.typed"} <= inside
    wheel, archive_bytes = (built.folder / f"{name}{end}" for end in ("-py3-none-any.whl", ".zip"))
    assert wheel.read_bytes() == archive_bytes.read_bytes()
    assert os.access(built.folder / "submit.sh", os.X_OK)
    assert names(folder / "dist") == [name]


def test_what_is_open_stays_open(project: Callable[..., Path]) -> None:
    built = made(project())
    (pipeline,) = built.manifest.pipelines

    assert [(p.name, p.required, p.default) for p in pipeline.parameters] == [
        ("rows", True, None),
        ("pace", False, "5 seconds"),
    ]
    assert {(gem.kind, gem.name) for gem in built.manifest.gems} == {
        ("source", "rate"),
        ("target", "noop"),
        ("transform", "python"),
    }
    assert "${rows}" in (built.folder / "bundle.json").read_text()


def test_the_environment_is_in_the_job_and_not_in_the_bundle(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(JOB)
    options = replace(THIN, platforms=("kubernetes",))
    texts, versions = [], set()
    for digit in "ab":
        monkeypatch.setenv("IMAGE", f"r.example.com/t@sha256:{digit * 64}")
        built = made(folder, options)
        texts.append((built.folder / "kubernetes" / "kubeflow.yaml").read_text())
        versions.add(built.manifest.version)
        assert digit * 64 in texts[-1]
        assert digit * 64 not in (built.folder / "bundle.json").read_text()
    assert texts[0] != texts[1]
    assert len(versions) == 1


def test_a_changed_input_is_another_version(project: Callable[..., Path]) -> None:
    folder = project()
    first = made(folder)
    (folder / "limits.py").write_text("LOWEST = 4\n")
    second = made(folder)

    assert first.manifest.version != second.manifest.version
    assert names(folder / "dist") == sorted(built.folder.name for built in (first, second))


def test_a_bundle_of_two_pipelines(project: Callable[..., Path]) -> None:
    other = "pipeline: other\nsources: {s: {gem: rate}}\ntargets: {t: {gem: noop, input: s}}\n"
    folder = project(**{"other.yaml": other})
    files = [str(folder / name) for name in ("ticks.yaml", "other.yaml")]
    built = build(files, replace(THIN, output=folder / "dist"))

    assert [pipeline.name for pipeline in built.manifest.pipelines] == ["ticks", "other"]
    assert built.manifest.name == "ticks"


def test_nothing_of_this_machine_is_in_it(project: Callable[..., Path]) -> None:
    folder = project(JOB.replace("${env:IMAGE}", "r.example.com/t:1"))
    built = made(folder, replace(THIN, platforms=("spark-submit",)))

    for path in built.folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert str(folder).encode() not in content, path
        assert str(Path.home()).encode() + b"/" not in content, path


# Always the same


@pytest.mark.programs
def test_two_builds_are_the_same_files(tmp_path: Path) -> None:
    """In other folders, with other umask, time zone, locale, hash seed and dates."""
    folders = []
    surroundings: list[tuple[int, dict[str, str]]] = [
        (0o022, {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1"}),
        (0o077, {"TZ": "Asia/Kolkata", "LC_ALL": "C", "PYTHONHASHSEED": "4242", "SOURCE_DATE_EPOCH": "5"}),
    ]
    for number, (umask, variables) in enumerate(surroundings):
        folder = tmp_path / f"copy {number}" / ("deep/" * number) / "flights"
        shutil.copytree(FLIGHTS, folder, ignore=shutil.ignore_patterns("data", "out", "checkpoints", "dist"))
        if number:
            for lock in ("flights.deps.lock", "flights.jars.lock"):
                shutil.copy(folders[0] / lock, folder)
            for path in folder.iterdir():
                os.utime(path, (10_000, 10_000))
                path.chmod(0o600)
        code = f"import os, sys; os.umask({umask}); from gem_bundle.cli import entry; sys.argv[0] = 'gem-bundle'; entry()"
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                code,
                "build",
                "flights.yaml",
                "--quiet",
                "--vendor-jars",
                "--no-executors",
            ],
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        folders.append(folder)
    first, second = (hashes(folder / "dist") for folder in folders)

    assert len(first) > 15
    (wheel,) = (folders[0] / "dist").rglob("*.whl")
    assert wheel.stat().st_size < 50_000
    assert first == second
    modes = [
        {
            path.relative_to(folder): path.stat().st_mode & 0o777
            for path in (folder / "dist").rglob("*")
            if path.is_file()
        }
        for folder in folders
    ]
    assert modes[0] == modes[1]


def test_a_bundle_for_other_machines_is_built_and_what_can_not_be_proved_here_is_said(
    project: Callable[..., Path],
) -> None:
    built = made(project(), replace(THIN, python="3.99", platform="manylinux2014_aarch64"))

    assert built.done[-1] == (
        "left out: loading the gems, and checking what is in the bundle: "
        "`gem-bundle verify` under Python 3.99 on manylinux2014_aarch64 does it"
    )


# What is refused


def test_errors_of_a_pipeline_stop_the_build(project: Callable[..., Path]) -> None:
    folder = project(
        **{"ticks.yaml": "pipeline: ticks\nsources: {s: {gem: rates}}\ntargets: {t: {gem: noop, input: s}}\n"}
    )

    with pytest.raises(PipelineError) as error:
        made(folder)

    assert codes(error) == ["GB201"]
    assert not (folder / "dist").exists()


@pytest.mark.programs
def test_a_missing_module(project: Callable[..., Path]) -> None:
    folder = project(
        **{"checks.py": "import nowhere_to_be_found\n\ndef positive(ticks):\n    return ticks\n"}
    )
    (folder / "limits.py").unlink()

    with pytest.raises(PipelineError) as error:
        made(folder, BuildOptions())

    assert codes(error) == ["GB624"]
    (folder / "checks.py").unlink()
    with pytest.raises(PipelineError) as error:
        made(folder)
    assert codes(error) == ["GB620"]


@pytest.mark.programs
def test_what_the_index_has_not_got_is_said_at_the_job(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(
        "job:\n  root: /Volumes/a/b\n  parameters: {rows: 5}\n  libraries: index\n"
        "  cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}\n"
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    with pytest.raises(PipelineError) as error:
        made(folder, replace(THIN, platforms=("databricks",)))

    assert codes(error) == ["GB617"]
    (found,) = (found for found in error.value.diagnostics if found.is_error)
    assert found.message.startswith("the job would install `gem-bundle` 0.1.0+editable from a package index")
    assert found.path == ("job", "libraries")
    assert (found.line, found.column) == (13, 14)


@pytest.mark.programs
def test_what_a_platform_can_not_do_is_said_at_the_job(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    folder = project("job:\n  continuous: true\n  root: /Volumes/a/b\n  cluster: {serverless: true}\n")

    with pytest.raises(PipelineError) as error:
        made(folder, replace(THIN, platforms=("databricks",)))

    assert all(code.startswith("GB6") for code in codes(error))
    assert any(found.line == 11 for found in error.value.diagnostics), [
        str(d) for d in error.value.diagnostics
    ]
    assert not (folder / "dist").exists()


def test_a_variable_that_the_job_needs(project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IMAGE", raising=False)
    folder = project(JOB)

    with pytest.raises(PipelineError) as error:
        made(folder, replace(THIN, platforms=("kubernetes",)))

    (wrong,) = [found for found in error.value.diagnostics if found.is_error]
    assert "IMAGE" in wrong.message
    assert wrong.path[0] == "job"


def test_a_folder_that_can_not_be_written(project: Callable[..., Path]) -> None:
    folder = project()
    (folder / "dist").write_text("in the way")

    with pytest.raises(GemError) as error:
        made(folder)

    assert error.value.code == "GB636"
    assert "--output" in (error.value.hint or "")


def test_dependencies_of_the_project_that_are_none(project: Callable[..., Path]) -> None:
    folder = project()
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["requests >>= 2"]\n')

    with pytest.raises(PipelineError) as error:
        made(folder)

    assert codes(error) == ["GB637"]


def test_a_build_that_fails_late_leaves_nothing(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project()
    before = made(folder)
    files = hashes(before.folder)

    def fail(*_arguments: Any, **_names: Any) -> None:
        raise GemError("GB667", "no environment", "Install one.")

    monkeypatch.setattr("gem_bundler.proof.verify.verify", fail)
    (folder / "limits.py").write_text("LOWEST = 9\n")
    with pytest.raises(GemError):
        made(folder)

    assert names(folder / "dist") == [before.folder.name]
    assert hashes(before.folder) == files


# The commands


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(arguments), prog_name="gem-bundle")
    return result.exit_code, result.output


def test_build_tells_what_it_made(project: Callable[..., Path]) -> None:
    folder = project()

    status, said = run("build", str(folder / "ticks.yaml"), "--thin", "-o", str(folder / "out"))

    assert status == 0
    assert "Compared 5 files with their hashes." in said
    assert "warning[GB649]" in said
    assert "6 files" not in said
    assert ": 5 files, 0." in said.splitlines()[-1]
    assert run("build", str(folder / "ticks.yaml"), "--thin", "-q", "-o", str(folder / "out")) == (0, "")


def test_platforms_are_named_right(project: Callable[..., Path]) -> None:
    status, said = run("build", str(project() / "ticks.yaml"), "--for", "spark-submit,mesos")

    assert status == 2
    assert "`mesos` is none of `spark-submit`, `databricks`, `kubernetes`." in said


def test_signed_bundles_are_refused_when_they_change(project: Callable[..., Path]) -> None:
    folder = project()
    public = generate_keys(folder / "release.pem")
    other = generate_keys(folder / "other.pem")
    options = ["--thin", "-q", "--sign", str(folder / "release.pem"), "-o", str(folder / "dist")]
    assert run("build", str(folder / "ticks.yaml"), *options)[0] == 0
    (bundle,) = (folder / "dist").iterdir()
    assert (bundle / "bundle.json.sig").exists()

    assert "GB632" in run("verify", str(bundle), "--key", str(other), "--no-executors")[1]
    (bundle / "main.py").write_bytes((bundle / "main.py").read_bytes() + b"# one line more\n")
    status, said = run("verify", str(bundle), "--key", str(public), "--no-executors")
    assert status == 1
    assert "GB630" in said
    assert "main.py" in said


def test_diff_tells_nodes_and_options(project: Callable[..., Path]) -> None:
    folder = project()
    old = made(folder).folder
    text = (folder / "ticks.yaml").read_text()
    (folder / "ticks.yaml").write_text(text.replace("1.2.0", "1.3.0").replace("gem: noop", "gem: console"))
    new = made(folder).folder

    status, said = run("diff", str(old), str(new))
    assert status == 0
    assert "1.3.0" in said
    assert "console" in said
    assert run("diff", str(old), str(old)) == (0, "Nothing has changed.\n")
    assert json.loads(run("diff", str(old), str(new), "--format", "json")[1])["changes"]
    assert run("diff", str(old), str(folder))[0] == 1


def test_a_damaged_bundle_is_no_traceback(project: Callable[..., Path]) -> None:
    built = made(project())
    (built.folder / "bundle.json").write_text("{")

    status, said = run("verify", str(built.folder))

    assert status == 1
    assert "GB630" in said
    assert "Traceback" not in said
