"""`gem-bundle new gem NAME --kind KIND`: a distribution that passes what it is asked, from the start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from gem_bundle.cli import main
from gem_bundle.plugins import KINDS
from gem_bundle.scaffold import GemNames, gem_names, gem_tree, write
from gem_bundle.scaffold.names import LONGEST
from tests.samples import some_of

if TYPE_CHECKING:
    from click.testing import Result
    from pyspark.sql import SparkSession

    from gem_bundle.semantics import Kind

a_new_gem = some_of("a gem from the template", 2)

ROOT = Path(__file__).parents[2]
NAME = "acme_queue"
LONG = ("a" * LONGEST, "_".join("a" * (LONGEST // 2)))


def new(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["new", "gem", *arguments], prog_name="gem-bundle")
    assert "Traceback" not in result.output
    return result


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def python(*arguments: str, folder: Path, **environment: str) -> str:
    """Run a Python program; returns what it says."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(arguments)} in {folder.name}:\n{done.stdout}{done.stderr}"
    return done.stdout


def packed(project: Path, into: Path) -> None:
    """Install a distribution into a folder, from its wheel, with nothing downloaded."""
    arguments = ["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile"]
    python("-m", "pip", *arguments, "--target", str(into), str(project), folder=project)


# Names


@pytest.mark.parametrize("name", ["acme_queue", "acme-queue", "gem-acme-queue", "gem_acme_queue"])
def test_a_gem_can_be_called_by_all_its_names(name: str) -> None:
    result = new(name, "--kind", "source")

    assert result.exit_code == 0, result.stderr
    assert list(Path().iterdir()) == [Path("gem-acme-queue")]
    project = tomllib.loads(Path("gem-acme-queue/pyproject.toml").read_text())["project"]
    assert project["name"] == "gem-acme-queue"
    assert project["entry-points"] == {"gem_bundle": {"acme_queue": "gem_acme_queue"}}
    code = Path("gem-acme-queue/src/gem_acme_queue/source.py").read_text()
    assert "class AcmeQueueSource(Source[AcmeQueueOptions]):" in code


@pytest.mark.parametrize(
    ("name", "kind", "stem"),
    [
        ("acme_queue", "source", "AcmeQueue"),
        ("queue_source", "source", "Queue"),
        ("queue_source", "target", "QueueSource"),
        ("source", "source", "Source"),
        ("s3", "target", "S3"),
        ("a_1", "transform", "A1"),
        ("class", "transform", "Class"),
    ],
)
def test_how_classes_are_named(name: str, kind: Kind, stem: str) -> None:
    assert gem_names(name, kind).stem == stem


@pytest.mark.parametrize(
    ("name", "better"),
    [("Acme Queue", "acme_queue"), ("gem-", "gem"), ("gem-2", "acme_source"), ("Gem-Acme", "gem_acme")],
)
def test_a_bad_name_is_answered_with_a_good_one(name: str, better: str) -> None:
    result = new(name, "--kind", "source")

    assert (result.exit_code, result.stdout) == (2, "")
    assert f"error[GB801]: `{name}` can't be the name of a gem" in result.stderr
    assert f"`{better}` is a name that can be used." in result.stderr
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        ("kafka", "source", "`gem-bundle 0.1.0` has a source of that name"),
        ("kafka", "transform", "`gem-bundle` has a package `gem_kafka` already"),
        ("bundle", "target", "there is a package `gem_bundle` already"),
        ("bundler", "source", "`gem-bundle` has a package `gem_bundler` already"),
        ("console", "target", "has a target of that name"),
    ],
)
def test_a_name_that_somebody_has_is_refused(name: str, kind: str, why: str) -> None:
    result = new(name, "--kind", kind)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB802]" in result.stderr
    assert why in result.stderr
    assert list(Path().iterdir()) == []
    assert new(f"acme_{name}", "--kind", kind).exit_code == 0


def test_the_own_gem_may_be_installed_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    info = site / "gem_acme_queue-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gem-acme-queue\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[gem_bundle]\nacme_queue = gem_acme_queue\n")
    tree = gem_tree(gem_names(NAME, "transform"))
    package = site / "gem_acme_queue"
    package.mkdir()
    (package / "__init__.py").write_text(tree.texts["src/gem_acme_queue/__init__.py"])
    monkeypatch.syspath_prepend(site)

    assert new(NAME, "--kind", "transform").exit_code == 0


# What is written


@pytest.mark.programs
@pytest.mark.parametrize("name", ["q", NAME, *LONG])
@pytest.mark.parametrize("kind", KINDS)
def test_ruff_finds_nothing(name: str, kind: Kind, tmp_path: Path) -> None:
    project = write(gem_tree(gem_names(name, kind)), tmp_path)

    python("-m", "ruff", "check", "--no-cache", folder=project)
    python("-m", "ruff", "format", "--check", "--no-cache", folder=project)


@pytest.fixture(scope="module")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


@a_new_gem
@pytest.mark.programs
@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_mypy_finds_nothing(kind: Kind, tmp_path: Path, mypy_cache: Path) -> None:
    project = write(gem_tree(gem_names(NAME, kind)), tmp_path)
    path = os.pathsep.join(str(ROOT / root) for root in ("core", "gems"))

    # As of what is installed: what mypy thinks of gem-bundle itself is no business of its users.
    options = ("--cache-dir", str(mypy_cache), "--follow-imports", "silent")
    said = python("-m", "mypy", *options, folder=project, MYPYPATH=path)

    assert re.fullmatch(r"Success: no issues found in \d source files\n", said)


@pytest.mark.parametrize("kind", KINDS)
def test_the_readme_and_the_ci_file_say_what_is_so(kind: Kind, tmp_path: Path) -> None:
    names = gem_names(NAME, kind)
    project = write(gem_tree(names), tmp_path)
    readme = (project / "README.md").read_text()

    for name in re.findall(r"^\| `([^`]+)` \|", readme, re.MULTILINE):
        assert (project / name).is_file(), name
    steps = yaml.safe_load((project / ".github/workflows/ci.yml").read_text())["jobs"]["test"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert "pytest" in commands
    assert commands[0].replace('"', "'") in readme
    (pipeline,) = re.findall(r"^```yaml\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert f"gem: {names.name}\n" in pipeline


# It works


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one new gem of each kind, as pip installs them."""
    site = tmp_path_factory.mktemp("site")
    for kind in KINDS:
        packed(write(gem_tree(GemNames(kind, f"new_{kind}")), tmp_path_factory.mktemp(kind)), site)
    return site


@a_new_gem
@pytest.mark.programs
def test_new_gems_are_found_and_described(installed: Path, tmp_path: Path) -> None:
    listed = python("-m", "gem_bundle", "gems", folder=tmp_path, PYTHONPATH=str(installed))

    assert "problem" not in listed
    for kind in KINDS:
        assert re.search(rf"^{kind} +new_{kind} +gem-new-{kind} 0\.1\.0 +\w.*\.$", listed, re.MULTILINE)
        shown = python(
            "-m", "gem_bundle", "describe", kind, f"new_{kind}", folder=tmp_path, PYTHONPATH=str(installed)
        )
        assert shown.startswith(f"new_{kind} ({kind})  gem-new-{kind} 0.1.0\n")


@pytest.mark.programs
@pytest.mark.parametrize("kind", KINDS)
def test_the_pipeline_of_the_readme_passes_a_check(kind: Kind, installed: Path, tmp_path: Path) -> None:
    readme = gem_tree(GemNames(kind, f"new_{kind}")).texts["README.md"]
    (pipeline,) = re.findall(r"^```yaml\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    (tmp_path / "pipeline.yaml").write_text(pipeline)

    said = python(
        *("-m", "gem_bundle", "check", "--deny-warnings", "pipeline.yaml"),
        folder=tmp_path,
        PYTHONPATH=str(installed),
    )

    assert said == f"pipeline.yaml: ok ({3 if kind == 'transform' else 2} nodes)\n"


@a_new_gem
@pytest.mark.programs
def test_the_parts_hold_their_own_tests(tmp_path: Path) -> None:
    for kind in KINDS:
        project = write(gem_tree(gem_names(f"parts_{kind}", kind)), tmp_path)
        said = python(
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/test_{kind}.py"),
            folder=project,
            PYTHONPATH=str(project / "src"),
        )
        assert re.search(r"\d+ passed in", said)


class Outcomes:
    """A plugin of pytest's that notes what became of each test."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self.passed: list[str] = []
        self.others: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = report.longreprtext
        elif report.when == "call":
            (self.passed if report.passed else self.others).append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)


@a_new_gem
@pytest.mark.spark
@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_gem_passes_the_conformance_suite(
    kind: Kind, spark: SparkSession, user_modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gem's own `pytest`, in this process: so it needs no Spark of its own.

    `user_modules` is a folder that executors import from.
    """
    project = write(gem_tree(gem_names(f"conforming_{kind}", kind)), tmp_path)
    packed(project, user_modules)
    monkeypatch.syspath_prepend(user_modules)
    monkeypatch.chdir(project)

    sessions = ModuleType("sessions")
    vars(sessions)["shared"] = pytest.fixture(scope="session", name="spark")(lambda: spark)
    outcomes = Outcomes()
    status = pytest.main(
        [
            *("-q", "-p", "no:cacheprovider", "--capture=no", "--import-mode=importlib"),
            # It would rewrite the asserts of gem-bundle's own modules, which are imported here already.
            *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
            *("-c", str(project / "pyproject.toml"), "--rootdir", str(project)),
            *("--basetemp", str(tmp_path / "inner"), str(project / "tests" / "test_conformance.py")),
        ],
        plugins=[outcomes, sessions],
    )

    assert outcomes.failed == {}
    assert status == pytest.ExitCode.OK
    # Nothing is waived.
    assert outcomes.others == []
    assert len(outcomes.passed) >= 20
