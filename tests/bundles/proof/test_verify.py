"""The proof of a bundle: a whole one passes; one that works on the building machine only doesn't."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.errors import GemError, PipelineError
from gem_bundle.run.jars import spark_home
from gem_bundler.bundle.manifest import read
from gem_bundler.dependencies.request import DepsRequest, fetch, resolve
from gem_bundler.proof.proofs import Proofs
from gem_bundler.proof.verify import bare_python, verify
from tests.bundles.bundling import bundle_folder
from tests.bundles.making import RUNTIME, write_files
from tests.samples import a_proof_with_spark, some_of

if TYPE_CHECKING:
    from pathlib import Path

a_proof = some_of("what a proof finds", 1)

TICKS = """\
pipeline: {name}
sources:
  ticks: {{gem: rate}}
transforms:
  clean: {{gem: python, input: ticks, options: {{function: "{name}_jobs:clean"}}}}
targets:
  screen: {{gem: console, input: clean}}
"""
CLEAN = "\n\ndef clean(ticks):\n    return ticks\n"
# Fails in the Python worker of an executor, and nowhere else.
NOT_ON_EXECUTORS = """\
import sys

if getattr(sys.modules["__main__"].__spec__, "name", "") == "pyspark.daemon":
    raise RuntimeError("not on executors")
"""


def made(folder: Path, name: str, code: str = "", *, thin: bool = False, **changes: Any) -> Path:
    """The bundle of a pipeline with a module that begins with some code."""
    project = write_files(
        folder / "project", {f"{name}.yaml": TICKS.format(name=name), f"{name}_jobs.py": code + CLEAN}
    )
    to = folder / "dist" / name
    bundle_folder(project, to, f"{name}.yaml", thin=thin, **changes)
    return to


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("whole"), "whole")


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    """A bundle that was carried elsewhere, into a folder with a blank in its name."""
    return shutil.copytree(whole, tmp_path / "a copy")


@pytest.mark.programs
def test_a_whole_bundle_passes_and_what_was_done_is_said(copied: Path) -> None:
    told: list[str] = []
    report = verify(copied, executors=False, report=told.append)

    assert report.ok, report.diagnostics
    assert report.diagnostics == []
    assert report.done == [
        "compared 5 files with their hashes",
        "loaded 3 gems and 1 module, and checked 1 pipeline, where nothing but pyspark is installed",
    ]
    assert report.left_out == ["loading the gems on executors: `gem-bundle verify` does it"]
    assert told == [
        "Making an environment that has only pyspark",
        "Loading every gem and checking the pipelines from inside the bundle",
    ]
    assert report.seconds > 0


@pytest.mark.programs
@pytest.mark.parametrize("damage", ["changed", "added", "missing"])
def test_nothing_of_a_damaged_bundle_is_executed(copied: Path, tmp_path: Path, damage: str) -> None:
    marker = tmp_path / "executed"
    evil = f"open({str(marker)!r}, 'w').close()\n"
    if damage == "changed":
        (copied / "main.py").write_text(evil)
    elif damage == "added":
        (copied / "pyspark.py").write_text(evil)
    else:
        (copied / "deps.tar.gz").unlink()

    report = verify(copied, executors=False)

    assert [diagnostic.code for diagnostic in report.diagnostics] == ["GB630"]
    assert not report.ok
    assert not marker.exists()


def test_a_folder_that_is_no_bundle_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        verify(tmp_path)
    assert caught.value.diagnostics[0].code == "GB630"


@a_proof
@pytest.mark.programs
def test_what_is_installed_on_the_building_machine_only_is_found(tmp_path: Path) -> None:
    report = verify(made(tmp_path, "lacking", "import hypothesis\n"), executors=False)

    (found,) = report.diagnostics
    assert found.code == "GB666"
    assert found.message == (
        "the module `lacking_jobs` can't be used where nothing but pyspark is installed: "
        "ModuleNotFoundError: No module named 'hypothesis'"
    )


@a_proof
@pytest.mark.programs
def test_the_variables_of_this_machine_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = write_files(tmp_path / "elsewhere", {"only_here.py": ""})
    bundle = made(tmp_path, "leaning", "import only_here\n")
    monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "rate")
    report = verify(bundle, executors=False)

    assert [found.code for found in report.diagnostics] == ["GB666"]
    assert "No module named 'only_here'" in report.diagnostics[0].message


@pytest.mark.programs
def test_a_bare_python_has_nothing_but_pyspark(tmp_path: Path) -> None:
    import subprocess

    probe = (
        "import importlib.metadata as m; print(sorted(d.name for d in m.distributions())); "
        "import pyspark.sql, py4j; print(pyspark.__file__)"
    )
    done = subprocess.run(
        [bare_python(tmp_path / "venv"), "-I", "-c", probe], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == "['py4j', 'pyspark']"
    assert done.stdout.splitlines()[1].startswith(str(tmp_path))


@a_proof
@pytest.mark.programs
def test_a_module_that_needs_a_session_is_a_warning(tmp_path: Path) -> None:
    """On the driver there is one when the module is imported; a UDF reaches executors without its module."""
    shout = 'from pyspark.sql.functions import udf\n\n\n@udf("string")\ndef shout(value):\n    return value\n'

    report = verify(made(tmp_path, "waiting", shout), executors=False)

    assert report.ok
    (found,) = report.diagnostics
    assert (found.code, found.severity) == ("GB668", "warning")
    assert found.message.startswith("the module `waiting_jobs` can be imported only where a session is")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of the runtime and all that it needs, as an index would have them."""
    folder = tmp_path_factory.mktemp("wheels")
    for name, path in fetch(resolve(DepsRequest(("gem-bundle",), "4.2.0"))).items():
        shutil.copy(path, folder / name)
    return folder


def thin(folder: Path) -> Path:
    lock = resolve(DepsRequest(("gem-bundle",), "4.2.0"))
    requires = tuple(f"{each.name}=={each.version}" for each in lock.distributions)
    return made(folder, "thin", thin=True, requires=requires)


@a_proof_with_spark
@pytest.mark.spark
def test_a_thin_bundle_is_installed_by_pip(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    report = verify(thin(tmp_path))
    assert report.ok, report.diagnostics
    assert report.done[1].endswith("where only pyspark is installed, and what pip installs for the bundle")


@pytest.mark.programs
def test_a_thin_bundle_that_pip_cannot_install_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(GemError) as caught:
        verify(made(tmp_path, "thin", thin=True, requires=("gem-bundle==0.1.0",)))
    assert caught.value.code == "GB667"
    assert "pip can't install what the thin bundle needs" in caught.value.message


@pytest.mark.programs
def test_the_fast_proof_of_a_thin_bundle_says_what_it_leaves_out(tmp_path: Path) -> None:
    report = verify(made(tmp_path, "quick", thin=True), executors=False)
    assert report.ok, report.diagnostics
    assert report.done[1].endswith("with the packages that are installed here")
    assert report.left_out == [
        "loading the gems on executors: `gem-bundle verify` does it",
        "installing what it needs with pip: `gem-bundle verify` does it",
    ]


def test_a_bundle_for_another_python_can_not_be_proved_here(tmp_path: Path) -> None:
    bundle = made(tmp_path, "foreign", thin=True, runtime=replace(RUNTIME, python="3.99"))

    (found,) = verify(bundle).diagnostics
    assert found.code == "GB667"
    assert found.message.startswith(
        "the bundle is for Python 3.99 on manylinux2014_x86_64, and this is Python 3."
    )

    report = verify(bundle, load=False)
    assert report.ok
    (left_out,) = report.left_out
    assert left_out.endswith("`gem-bundle verify` under Python 3.99 on manylinux2014_x86_64 does it")


@a_proof_with_spark
@pytest.mark.spark
def test_executors_load_everything_too_and_once(copied: Path, tmp_path: Path) -> None:
    proofs = Proofs(tmp_path / "cache")
    kept_by_workers = spark_home() / "work"
    before = sorted(kept_by_workers.glob("*"))
    report = verify(copied, proofs=proofs)
    assert report.ok, report.diagnostics
    assert report.left_out == []
    # Nothing stays among installed packages.
    assert sorted(kept_by_workers.glob("*")) == before
    assert report.done[-1] == "loaded the same on 2 executors of a cluster of two workers"

    told: list[str] = []
    again = verify(copied, proofs=proofs, report=told.append)
    assert again.ok
    assert again.left_out == []
    assert again.done[-1] == "found that executors have loaded the same dependencies and modules before"
    assert "Loading every gem on two executors" not in told


@a_proof_with_spark
@pytest.mark.spark
def test_what_fails_on_executors_only_is_found(tmp_path: Path) -> None:
    proofs = Proofs(tmp_path / "cache")
    bundle = made(tmp_path, "choosy", NOT_ON_EXECUTORS)
    report = verify(bundle, proofs=proofs)
    assert not proofs.has(read(bundle))
    (found,) = report.diagnostics
    assert found.code == "GB666"
    assert (
        found.message == "the module `choosy_jobs` can't be used on executors: RuntimeError: not on executors"
    )
