"""Gems of strangers: two distributions, built to wheels, installed, tested, checked, bundled and run.

Nothing of the repository is on the path of what is tried here: the environment has gem-bundle's wheel and
those of `examples/gem-hec` and `examples/gem-redis-streams`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zipfile import ZipFile

import pytest

from tests.bundles.cluster import bare_python, cluster, report_of  # noqa: F401 (fixtures)
from tests.kit.clean import ROOT, built, clean_environment, clean_variables
from tests.samples import in_an_environment_of_its_own, in_another_place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from tests.bundles.cluster import Cluster

DISTRIBUTIONS = ("gem-hec", "gem-redis-streams")
TOKEN = "t0ken-of-the-tests"
PIPELINE = """\
pipeline: orders
description: Orders from Redis, to a collector that takes each of them.
parameters:
  redis: redis://localhost:6379
  streams: [orders]
  collector: http://localhost:8088
sources:
  orders:
    gem: redis_streams
    options:
      url: ${redis}
      streams: ${streams}
      max_entries_per_trigger: 400
      entries_per_partition: 100
transforms:
  amounts:
    gem: select
    input: orders
    options:
      columns:
        - timestamp as at
        - id
        - stream as shop
        - cast(fields['amount'] as int) as amount
targets:
  collector:
    gem: hec
    input: amounts
    trigger: {available_now: true}
    options:
      url: ${collector}
      token: ${secret:splunk/token}
      time_column: at
      source_column: shop
      max_payload: 2000
      gzip: true
      retry_for: 1 minute
      backoff: 10 ms
      max_backoff: 100 ms
"""


@dataclass(frozen=True)
class Stranger:
    """Somebody who has installed gem-bundle and the two distributions.

    Args:
        scripts: The scripts of the environment.
        wheels: The wheels of the two.
    """

    scripts: Path
    wheels: list[Path]

    def run(self, name: str, *arguments: str | Path, cwd: Path, **variables: str) -> str:
        """Run a program of the environment; returns what it prints."""
        done = self.try_to_run(name, *arguments, cwd=cwd, **variables)
        assert done.returncode == 0, done.stdout[-8000:]
        return done.stdout

    def try_to_run(
        self, name: str, *arguments: str | Path, cwd: Path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        return subprocess.run(
            [self.scripts / name, *arguments],
            cwd=cwd,
            env={**clean_variables(self.scripts), "COLUMNS": "200", **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )


@pytest.fixture(scope="module")
def stranger(gem_bundle_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """The environment with the three wheels."""
    folder = tmp_path_factory.mktemp("stranger")
    for name in DISTRIBUTIONS:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")
        shutil.copytree(ROOT / "examples" / name, folder / "sources" / name, ignore=ignored)
    wheels = built(*(folder / "sources" / name for name in DISTRIBUTIONS), into=folder)
    scripts = clean_environment(folder / "environment", gem_bundle_wheel, *wheels)
    return Stranger(scripts, wheels)


@pytest.fixture(scope="module")
def redis_server_is_there() -> None:
    """A redis-server on the PATH; without one the tests fail with the sentence that says how to get it."""
    done = subprocess.run([ROOT / "scripts/redis-server"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(done.stderr.strip(), pytrace=False)


@in_an_environment_of_its_own
@pytest.mark.programs
def test_both_are_whole_distributions(stranger: Stranger, tmp_path: Path) -> None:
    contents = subprocess.run(
        [sys.executable, "-m", "check_wheel_contents", *stranger.wheels],
        capture_output=True,
        text=True,
        check=False,
    )
    listed = json.loads(stranger.run("gem-bundle", "gems", "--format", "json", cwd=tmp_path))
    described = stranger.run("gem-bundle", "describe", "hec", cwd=tmp_path)

    assert contents.returncode == 0, contents.stdout
    found = {(gem["kind"], gem["name"], gem["distribution"]) for gem in listed["gems"]}
    assert {("target", "hec", "gem-hec"), ("source", "redis_streams", "gem-redis-streams")} <= found
    assert "retry_for" in described


@pytest.mark.spark
@in_an_environment_of_its_own
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_their_own_tests_pass(
    stranger: Stranger, redis_server_is_there: None, name: str, tmp_path: Path
) -> None:
    """Their tests are run as their authors would: with the suite of gem-bundle's plugin among them."""
    shutil.copytree(ROOT / "examples" / name / "tests", tmp_path / "tests")
    shutil.copy(ROOT / "examples" / name / "pyproject.toml", tmp_path)

    said = stranger.run("pytest", "-q", "-p", "no:cacheprovider", "--color=no", cwd=tmp_path)

    assert " passed" in said.splitlines()[-1]
    assert not {"failed", "skipped", "xfailed"} & set(said.splitlines()[-1].replace(",", "").split())


# A pipeline with both of them


def helper(name: str, distribution: str) -> ModuleType:
    """A module among the tests of a distribution: its stand-in for what is outside."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, ROOT / "examples" / distribution / "tests" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def redis_server(redis_server_is_there: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with helper("redis_server", "gem-redis-streams").serving(tmp_path_factory.mktemp("redis")) as found:
        yield found


@pytest.fixture
def collector() -> Iterator[Any]:
    with helper("collector_server", "gem-hec").serving() as found:
        yield found


@pytest.fixture
def streams(redis_server: Any) -> list[str]:
    """Two streams with 1000 orders."""
    keys = [f"{shop}-{uuid4().hex[:8]}" for shop in ("oslo", "rome")]
    with redis_server.client.pipeline() as pipeline:
        for number in range(1000):
            entry = {"amount": str(number)}
            pipeline.xadd(keys[number % 2], entry, id=f"{1767600000000 + number}-0")
        pipeline.execute()
    return keys


def fails_at_times(number: int) -> str:
    """What the collector does with a POST: three of ten go wrong, each in another way."""
    return ("", "503:0", "", "", "lose the answer", "", "", "drop", "", "")[number % 10]


def assert_all_arrived(collector: Any, streams: list[str]) -> None:
    events = collector.events
    assert {event["event"]["amount"] for event in events} == set(range(1000))
    assert {event["source"] for event in events} == set(streams)
    for event in events:
        assert event["time"] == 1767600000 + event["event"]["amount"] / 1000
        assert event["event"]["id"] == f"{1767600000000 + event['event']['amount']}-0"


@dataclass(frozen=True)
class Project:
    """A pipeline file, and what it is run with."""

    file: Path
    arguments: tuple[str, ...]
    secret: dict[str, str]


@pytest.fixture
def project(tmp_path: Path, redis_server: Any, collector: Any, streams: list[str]) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "orders.yaml").write_text(PIPELINE)
    values = {"redis": redis_server.url, "streams": json.dumps(streams), "collector": collector.url}
    arguments = tuple(word for name, value in values.items() for word in ("-p", f"{name}={value}"))
    return Project(folder / "orders.yaml", arguments, {"GEM_BUNDLE_SECRET_SPLUNK_TOKEN": TOKEN})


@in_an_environment_of_its_own
@pytest.mark.programs
def test_a_pipeline_with_both_is_checked(stranger: Stranger, project: Project) -> None:
    folder = project.file.parent
    unknown = PIPELINE.replace("gzip:", "gzipped:").replace("max_entries_per", "max_entrys_per")
    (folder / "unknown.yaml").write_text(unknown)
    (folder / "missing.yaml").write_text(PIPELINE.replace("time_column: at", "time_column: when"))

    connect = ("check", "--connect", project.file, *project.arguments)
    fine = stranger.run("gem-bundle", *connect, cwd=folder, **project.secret)
    refused = stranger.try_to_run("gem-bundle", "check", "unknown.yaml", "missing.yaml", cwd=folder)

    assert "everything it needs can be reached" in fine
    assert refused.returncode == 1
    for line in (
        "unknown.yaml:13:7: error[GB204]: `orders`: `redis_streams` has no option `max_entrys_per_trigger`",
        "Did you mean `max_entries_per_trigger`?",
        "unknown.yaml:36:7: error[GB204]: `collector`: `hec` has no option `gzipped`",
        "missing.yaml:33:20: error[GB207]: target `collector`: there is no column `when`",
        "The rows have: `at`, `id`, `shop`, `amount`.",
    ):
        assert line in refused.stdout


@in_another_place
@pytest.mark.spark
def test_a_bundle_of_it_runs_on_a_cluster(
    stranger: Stranger,
    project: Project,
    collector: Any,
    streams: list[str],
    cluster: Cluster,  # noqa: F811
    tmp_path: Path,
) -> None:
    folder = project.file.parent
    # That executors can load it is proved by what they do with it.
    build = ("build", project.file, "-o", folder / "dist", "--no-executors")
    stranger.run("gem-bundle", *build, cwd=folder, **project.secret)
    (bundle,) = (folder / "dist").iterdir()
    manifest = json.loads((bundle / "bundle.json").read_text())
    collector.fault = fails_at_times
    root = tmp_path / "root"
    root.mkdir()
    small = ("--driver-memory", "1g", "--executor-memory", "800m", "--conf", "spark.ui.enabled=false")

    done = cluster.run(
        *("bash", str(bundle / "submit.sh"), "--master", cluster.master, *small, "--"),
        *(*project.arguments, "--root", str(root)),
        cwd=tmp_path,
        **project.secret,
    )

    report = report_of(done)["targets"]["collector"]
    gems = {gem["name"]: gem["distribution"] for gem in manifest["gems"]}
    assert gems == {"redis_streams": "gem-redis-streams", "select": "gem-bundle", "hec": "gem-hec"}
    assert_all_arrived(collector, streams)
    assert (report["micro_batches"], report["rows_out"]) == (3, 1000)
    assert TOKEN not in done.stdout + done.stderr
    assert TOKEN not in "".join(texts_of(bundle))


def texts_of(bundle: Path) -> Iterator[str]:
    """All that was written for the bundle: its own files, and those in the archive of its modules."""
    for file in bundle.iterdir():
        if file.suffix == ".zip":
            with ZipFile(file) as archive:
                yield from (archive.read(name).decode() for name in archive.namelist())
        elif file.suffix not in (".gz", ".whl"):
            yield file.read_text()
