"""The start of a bundle: what is wrong is said at once; what runs already is left alone; what is right runs."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundler.bundle.model import LockedDistribution
from gem_bundler.start import main
from gem_bundler.start.environment import check_environment
from gem_bundler.start.lease import Leases
from gem_bundler.start.lease_owner import Owner, this_process
from gem_bundler.start.lease_store import FileStore
from gem_bundler.start.main_py import machine, main_py
from tests.bundles.bundling import bundle_folder
from tests.bundles.making import DELTA, PLUGGY, built, draft, write_files
from tests.samples import a_killed_program, a_started_bundle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundler.bundle.manifest import Manifest
    from tests.bundles.cluster import Cluster
    from tests.connect_server import ConnectServer

CLICKS = """\
pipeline: {name}
version: 1.4.0
description: Clicks, cleaned.
parameters:
  path: {{type: string, description: Where the clicks lie.}}
  least: 1
  files: 1000
  checkpoints: checkpoints
profiles:
  rich: {{least: 3}}
checkpoints: ${{checkpoints}}
sources:
  clicks:
    gem: file
    options:
      format: json
      path: "${{path}}"
      schema: "page string, amount int"
      max_files_per_trigger: ${{files}}
transforms:
  clean:
    gem: python
    input: clicks
    options: {{function: "{name}_jobs:clean", arguments: {{least: "${{least}}"}}}}
targets:
  table:
    gem: delta
    input: clean
    trigger: {{available_now: true}}
    options: {{path: out/clicks}}
"""
# The function runs on the driver; the UDF in it on executors, which find the second module, and pydantic's
# native part, in the bundle only.
JOBS = """\
from pyspark.sql.functions import col, udf

from {name}_words import shout


def clean(clicks, least):
    loud = udf(shout)
    return clicks.where(col("amount") >= least).select(loud(col("page")).alias("page"), "amount")
"""
WORDS = """\
def shout(page):
    import pydantic

    return f"{page.upper()}{pydantic.VERSION[0]}"
"""


def project(folder: Path, name: str) -> Path:
    """A project whose pipeline needs a Python module that needs another one."""
    files: dict[str, str | bytes] = {
        f"{name}.yaml": CLICKS.format(name=name),
        f"{name}_jobs.py": JOBS.format(name=name),
        f"{name}_words.py": WORDS,
    }
    return write_files(folder, files)


def clicks(folder: Path, files: int = 3) -> Path:
    """Ten clicks in each of some files; the amount is the file's number."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, files + 1):
        lines = [json.dumps({"page": f"p{page}", "amount": number}) for page in range(10)]
        (folder / f"{number}.json").write_text("\n".join(lines))
    return folder


def expected(files: int = 3, least: int = 1) -> list[tuple[str, int]]:
    return sorted((f"P{page}2", number) for number in range(least, files + 1) for page in range(10))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The package of a bundle that can be imported, from a zip file; the current folder is empty."""
    name = "s" + sha256(request.node.nodeid.encode()).hexdigest()[:10]
    wheel = built(project(tmp_path / "project", name), f"{name}.yaml")
    archive = tmp_path / wheel.manifest.archive
    archive.write_bytes(wheel.data)
    monkeypatch.syspath_prepend(str(archive))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return wheel.manifest.package


# What a start would do


def test_a_plan_starts_nothing(installed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clicks(tmp_path / "root" / "in")
    wanted = ["--plan", "--root", str(tmp_path / "root"), "-p", "path=in"]
    assert main(installed, wanted) == 0
    out = capsys.readouterr().out
    assert "target table: new\n" in out
    assert out.splitlines()[-1].endswith(
        ": 1 new. There is no checkpoint yet; the sources are read from where their options say."
    )
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["in"]
    assert main(installed, [*wanted, "--target", "tables"]) == 1
    assert "error[GB108]" in capsys.readouterr().err


# What is wrong


def test_everything_that_is_wrong_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CLICKS.format(name="allwrong").replace("out/clicks", '"${secret:web/bucket}/clicks"')
    wheel = built(
        write_files(
            tmp_path / "project",
            {"a.yaml": text, "allwrong_jobs.py": JOBS.format(name="allwrong"), "allwrong_words.py": WORDS},
        ),
        "a.yaml",
        runtime=replace(draft(project(tmp_path / "other", "x"), "x.yaml").runtime, spark="3.5.4"),
    )
    wheel_file = tmp_path / "wheel.zip"
    changed = wheel.data.replace(b"page.upper()", b"page.lower()")
    assert changed != wheel.data
    wheel_file.write_bytes(changed)
    monkeypatch.syspath_prepend(str(wheel_file))

    status = main("allwrong_bundle", ["-p", "least=many", "-p", "unknown=1"])

    said = capsys.readouterr().err
    assert status == 1
    found = re.findall(r"error\[(GB\d+)\]: (.*)", said)
    assert {code for code, _ in found} == {"GB010", "GB011", "GB012", "GB015", "GB630", "GB664"}
    assert "`allwrong_words.py` isn't what was built" in said
    assert "a.yaml:5:3: error[GB011]: the parameter `path` has no value" in said
    assert "built for Spark 3.5.4, and this is Spark 4.2.0" in said
    assert f"{len(found)} errors: allwrong was not started." in said


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--help"], 0, "Clicks, cleaned."),
        (["--version"], 0, "1.4.0+g"),
        (["--nonsense"], 2, "No such option"),
        (["-p", "least"], 2, "not of the form name=value"),
        (["--pipeline", "other"], 2, "has no pipeline `other`"),
        (["--root", "nowhere"], 2, "does not exist"),
        (["-p", "path=x", "--profile", "poor"], 1, "there is no profile `poor`"),
        (["-p", "path=x", "--target", "tabel"], 1, "Did you mean `table`?"),
        (["-p", "path=x", "--serve", "everywhere"], 2, "is not of the form [HOST:]PORT"),
    ],
)
def test_the_command_line(
    installed: str, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, says: str
) -> None:
    assert main(installed, arguments) == status
    said = capsys.readouterr()
    assert says in said.out + said.err
    assert "Traceback" not in said.err


def test_a_manifest_that_is_damaged_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path, {"hurt_bundle/__init__.py": "", "hurt_bundle/bundle.json": "{"})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main("hurt_bundle", []) == 1
    assert "error[GB630]" in capsys.readouterr().err


# What it was built for


def codes(manifest: Manifest) -> list[str]:
    return [diagnostic.code for diagnostic in check_environment(manifest)]


@pytest.mark.parametrize(
    ("runtime", "jars", "databricks", "found"),
    [
        ({}, True, False, []),
        ({"spark": "4.2.7"}, True, False, []),
        ({"spark": "4.1.0"}, True, False, ["GB664"]),
        ({"spark": "4.1.0"}, True, True, ["GB665"]),
        ({"spark": "4.1.0"}, False, False, ["GB665"]),
        ({"spark": "3.5.4"}, False, False, ["GB664"]),
        ({"python": "3.99"}, False, False, ["GB665"]),
        ({"java": 99}, False, False, ["GB664"]),
    ],
)
def test_other_versions_than_it_was_built_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    runtime: dict[str, Any],
    jars: bool,
    databricks: bool,
    found: list[str],
) -> None:
    manifest = draft(project(tmp_path, "v"), "v.yaml", jars=(DELTA,) if jars else ())
    here = {"python": f"{sys.version_info[0]}.{sys.version_info[1]}", **runtime}
    manifest = replace(manifest, runtime=replace(manifest.runtime, **here))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    # A session of another test is there or not: the Java of this machine is asked for here.
    monkeypatch.setattr("gem_bundle.run.session.brings_jars", lambda: False)
    if databricks:
        monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "18.0")
    assert codes(manifest) == found


def test_no_java_is_an_error_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = draft(project(tmp_path, "v"), "v.yaml")
    monkeypatch.setattr("gem_bundle.run.session.brings_jars", lambda: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "GB501" in codes(manifest)


# main.py


def archive(members: dict[str, bytes], *extra: tarfile.TarInfo) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for info in extra:
            tar.addfile(info)
    return made.getvalue()


SAYS = b"def main(package):\n    import sys\n    print(package, __file__, sys.path[:2])\n    return 0\n"
DEPS = {"gem_bundler/__init__.py": b"", "gem_bundler/start.py": SAYS}


def main_folder(
    folder: Path, deps: bytes | None, *, built_for: Callable[[Manifest], Manifest] = lambda m: m
) -> Path:
    """A folder with a `main.py` and an archive of dependencies that tells who started it."""
    manifest = draft(project(folder / "project", "m"), "m.yaml", deps="deps.tar.gz" if deps else None)
    manifest = replace(manifest, archive="m-1.zip", version="1")
    manifest = built_for(manifest)
    to = folder / "a bundle"
    to.mkdir()
    (to / "main.py").write_bytes(main_py(manifest, sha256(deps).hexdigest() if deps else None))
    (to / "m-1.zip").write_bytes(b"PK\5\6" + bytes(18))
    if deps:
        (to / "deps.tar.gz").write_bytes(deps)
    return to


def run_main(
    python: Path | str, folder: Path, home: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    home.mkdir(exist_ok=True)
    command = [str(python), str(folder / "main.py")]
    environment = {"PATH": os.defpath, "HOME": str(home), **variables}
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)


@pytest.mark.programs
def test_main_py_unpacks_once_and_starts_the_package(tmp_path: Path, bare_python: Path) -> None:
    folder = main_folder(tmp_path, archive(DEPS))
    first = run_main(bare_python, folder, tmp_path / "home")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith(f"m_bundle {tmp_path}/home/.cache/gem-bundle/deps/")
    (kept,) = (tmp_path / "home/.cache/gem-bundle/deps").iterdir()
    assert first.stdout.rstrip().endswith(f"['{folder}/m-1.zip', '{kept}']")
    (kept / "gem_bundler" / "start.py").write_bytes(SAYS.replace(b"return 0", b"return 0 + 7"))
    assert run_main(bare_python, folder, tmp_path / "home").returncode == 7  # it is not unpacked again


# Stands in for pyspark in a process that spark-submit has started.
SPARK = """
class SparkContext:
    settings = {settings}

    @classmethod
    def getSystemProperty(cls, key):
        return cls.settings.get(key)

    @classmethod
    def setSystemProperty(cls, key, value):
        print(key, value)
"""


@pytest.mark.programs
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"spark.master": "local[2]"}, "{zip}:{deps}"),
        ({"spark.master": "local", "spark.executorEnv.PYTHONPATH": "./deps"}, "{zip}:{deps}:./deps"),
        (
            {"spark.master": "spark://host:7077", "spark.executorEnv.PYTHONPATH": "./deps"},
            "./deps:{zip}:{deps}",
        ),
        ({"spark.master": "yarn"}, "{zip}:{deps}"),
    ],
)
def test_main_py_tells_processes_beside_the_driver_where_to_import_from(
    tmp_path: Path, settings: dict[str, str], expected: str
) -> None:
    """Executors look into their own folder first; what Spark plans with beside the driver has only the driver's."""
    folder = main_folder(tmp_path, archive(DEPS))
    (folder / "pyspark.py").write_text(SPARK.format(settings=settings))

    done = run_main(sys.executable, folder, tmp_path / "home", PYSPARK_GATEWAY_PORT="1")

    assert (done.returncode, done.stderr) == (0, "")
    (kept,) = (tmp_path / "home/.cache/gem-bundle/deps").iterdir()
    paths = expected.format(deps=kept, zip=folder / "m-1.zip")
    assert done.stdout.splitlines()[0] == f"spark.executorEnv.PYTHONPATH {paths}"


@pytest.mark.programs
def test_main_py_does_without_a_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_files(home, {".cache": "not a folder"})
    done = run_main(sys.executable, main_folder(tmp_path, archive(DEPS)), home)
    assert (done.returncode, done.stderr) == (0, "")
    unpacked = re.search(r"m_bundle (\S+)/gem_bundler/start.py", done.stdout)
    assert unpacked is not None
    assert not os.path.exists(unpacked[1])  # noqa: PTH110 (a text that was printed)


@pytest.mark.programs
def test_main_py_takes_what_spark_has_unpacked_in_cluster_mode(tmp_path: Path) -> None:
    folder = main_folder(tmp_path, archive(DEPS))
    (folder / "deps.tar.gz").unlink()
    home = tmp_path / "home"
    done = run_main(sys.executable, folder, home)
    assert done.returncode == 1
    assert "deps.tar.gz is missing beside main.py" in done.stderr
    write_files(home / "deps", DEPS)
    done = run_main(sys.executable, folder, home)
    assert done.stdout.startswith(f"m_bundle {home}/deps/gem_bundler/start.py")


def link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


@pytest.mark.programs
@pytest.mark.parametrize(
    "deps",
    [
        archive({"../outside.py": b"x"}),
        archive({"/tmp/outside.py": b"x"}),
        archive({"a/../../outside.py": b"x"}),
        archive(DEPS, link("out", "/tmp")),
    ],
)
def test_main_py_unpacks_nothing_but_files_and_nowhere_else(tmp_path: Path, deps: bytes) -> None:
    home = tmp_path / "home"
    done = run_main(sys.executable, main_folder(tmp_path, deps), home)
    assert done.returncode == 1
    assert "holds a strange file" in done.stderr
    assert not list(tmp_path.rglob("outside.py"))
    assert not list((home / ".cache/gem-bundle/deps").iterdir())


@pytest.mark.programs
def test_main_py_refuses_an_archive_that_was_changed(tmp_path: Path) -> None:
    folder = main_folder(tmp_path, archive(DEPS))
    (folder / "deps.tar.gz").write_bytes(archive({**DEPS, "more.py": b""}))
    done = run_main(sys.executable, folder, tmp_path / "home")
    assert done.returncode == 1
    assert "isn't what was built" in done.stderr


NATIVE = LockedDistribution("p", "1", "p-1-cp311-cp311-manylinux2014_x86_64.whl", "aa" * 32)


@pytest.mark.programs
def test_main_py_knows_python_and_machine_where_there_are_native_parts(tmp_path: Path) -> None:
    def other(native: bool, **runtime: Any) -> Callable[[Manifest], Manifest]:
        return lambda m: replace(
            m, distributions=(NATIVE if native else PLUGGY,), runtime=replace(m.runtime, **runtime)
        )

    old = main_folder(tmp_path / "1", archive(DEPS), built_for=other(True, python="3.9"))
    done = run_main(sys.executable, old, tmp_path / "home")
    assert done.returncode == 1
    assert "the bundle was built for Python 3.9, and this is Python 3." in done.stderr
    assert "PYSPARK_PYTHON" in done.stderr
    arm = main_folder(tmp_path / "2", archive(DEPS), built_for=other(True, platform="manylinux2014_s390x"))
    assert "machines of type s390x" in run_main(sys.executable, arm, tmp_path / "home").stderr
    pure = main_folder(tmp_path / "3", archive(DEPS), built_for=other(False, python="3.9"))
    assert run_main(sys.executable, pure, tmp_path / "home").returncode == 0


@pytest.mark.parametrize(
    ("platform", "name"),
    [("manylinux2014_x86_64", "x86_64"), ("macosx_11_0_arm64", "arm64"), ("any", None)],
)
def test_the_machine_of_a_platform(platform: str, name: str | None) -> None:
    assert machine(platform) == name


def test_main_py_is_python_that_old_ones_read_too(tmp_path: Path) -> None:
    import ast

    text = main_py(draft(project(tmp_path, "m"), "m.yaml"))
    ast.parse(text, feature_version=(3, 7))
    assert max(map(len, text.decode().splitlines())) <= 110


def test_spark_submit_and_a_server_are_one_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = draft(project(tmp_path, "m"), "m.yaml")
    monkeypatch.setenv("SPARK_REMOTE", "sc://spark/;token=secret")
    assert "GB669" not in codes(manifest)  # as by `python main.py`
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    found = next(check_environment(manifest))
    assert (found.code, found.severity) == ("GB669", "error")
    assert "secret" not in str(found)


# A stream that runs


def held(folder: Path, package: str) -> Leases:
    leases = Leases(
        {"table": str(folder / "checkpoints" / package.removesuffix("_bundle") / "table")}, this_process("x")
    )
    assert leases.acquire() == {}
    return leases


def test_a_second_start_leaves_a_stream_alone(
    installed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with held(tmp_path / "here", installed):
        assert main(installed, ["-p", "path=in"]) == 1
        said = capsys.readouterr().err
        assert f"error[GB660]: `table` is being written by x, process {os.getpid()} on " in said
        assert main(installed, ["-p", "path=in", "--keep-alive"]) == 0
        assert "is running already; nothing to do. target `table`: x, process" in capsys.readouterr().err


def test_a_stream_that_was_started_without_a_bundle_is_alive_too(
    installed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from gem_bundle.run.lock import CheckpointLocks

    place = tmp_path / "here" / "checkpoints" / installed.removesuffix("_bundle") / "table"
    with CheckpointLocks({"table": str(place)}) as locks:
        assert locks.acquire() == []
        assert main(installed, ["-p", "path=in", "--keep-alive"]) == 0
        assert "is running already; nothing to do" in capsys.readouterr().err
        assert main(installed, ["-p", "path=in"]) == 1
        assert "error[GB401]" in capsys.readouterr().err
    with held(tmp_path / "here", installed):
        pass  # the lease was given back


def test_where_no_lease_can_be_kept_only_keep_alive_needs_one(
    installed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["-p", "path=in", "-p", "checkpoints=wasbs://box@account/c"]
    assert main(installed, [*arguments, "--keep-alive"]) == 1
    assert "error[GB662]: no lease can be kept beside the checkpoint wasbs:" in capsys.readouterr().err
    assert main(installed, [*arguments, "--report", "nowhere/report.json"]) == 1
    said = capsys.readouterr().err
    assert "warning[GB663]" in said
    assert "error[GB511]" in said  # it went on, as far as it could


# With Spark


def rows(spark: SparkSession, table: Path) -> list[tuple[str, int]]:
    return sorted((row.page, row.amount) for row in spark.read.format("delta").load(str(table)).collect())


@a_started_bundle
@pytest.mark.spark
def test_it_runs_in_the_session_that_is_there(
    installed: str,
    tmp_path: Path,
    spark: SparkSession,
    user_modules: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = installed.removesuffix("_bundle")
    (user_modules / f"{name}_words.py").write_text(WORDS)  # where this session's workers look
    clicks(tmp_path / "root" / "in")
    root = ["--root", str(tmp_path / "root")]
    assert main(installed, [*root, "-p", "path=in", "--report", "report.json"]) == 0
    assert rows(spark, tmp_path / "root/out/clicks") == expected()
    report = json.loads((tmp_path / "here" / "report.json").read_text())
    assert report["totals"]["rows_out"] == 30
    assert report["version"] == "1.4.0"
    store = FileStore(str(tmp_path / "root/checkpoints" / name / "table"))
    assert [Owner.of(store.read(n)).released for n in store.generations()] == [True]
    clicks(tmp_path / "root" / "in", 4)
    # The profile gives the function another argument, and whether it keeps state nobody knows.
    richer = ["-p", "path=in", "--profile", "rich", "--accept", "GB423:clean"]
    assert main(installed, [*root, *richer, "--keep-alive"]) == 0
    assert rows(spark, tmp_path / "root/out/clicks") == expected(4)
    assert spark.range(1).count() == 1  # the session is left as it was


@a_started_bundle
@pytest.mark.spark
@pytest.mark.parametrize("thread", ["main", "another"])
def test_a_run_that_loses_its_lease_stops(
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    thread: str,
) -> None:
    name = f"lossy_{thread}"
    # Between its micro-batches there is time, or the next one may begin while the query is told to stop.
    text = (
        f"pipeline: {name}\nsources: {{ticks: {{gem: rate, options: {{rows_per_second: 10}}}}}}\n"
        "targets: {table: {gem: delta, input: ticks, trigger: {processing_time: 3 seconds}, "
        "options: {path: out}}}\n"
    )
    wheel = built(write_files(tmp_path / "project", {"lossy.yaml": text}), "lossy.yaml")
    (tmp_path / "lossy.zip").write_bytes(wheel.data)
    monkeypatch.syspath_prepend(str(tmp_path / "lossy.zip"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gem_bundler.start.lease_owner.this_process", lambda b: this_process(b, every=0.2))
    checkpoint = tmp_path / "checkpoints" / name / "table"
    rates = spark.readStream.name("rates").format("rate").load()
    writer = rates.writeStream.format("noop").queryName("not ours")
    other = writer.option("checkpointLocation", str(tmp_path / "other")).start()
    over = threading.Event()

    def steal() -> None:
        while not over.wait(0.1):
            if (checkpoint / "commits" / "0").exists():
                FileStore(str(checkpoint)).create(2, Owner("thief", "elsewhere", 1).as_bytes())
                return

    thief = threading.Thread(target=steal)
    thief.start()
    statuses: list[int] = []

    def run() -> None:
        statuses.append(main(f"{name}_bundle", []))

    if thread == "main":
        run()
    else:
        elsewhere = threading.Thread(target=run)
        elsewhere.start()
        elsewhere.join()
    over.set()
    thief.join()
    active = {query.name for query in spark.streams.active}
    other.stop()

    assert statuses == [1]
    lost = "the lease is lost: it was taken over by process 1 on elsewhere"
    assert f"error[GB661]: the run was stopped: {lost}" in capsys.readouterr().err
    assert f"{name}_table" not in active
    assert "not ours" in active
    if thread == "main":  # gracefully: no micro-batch was left half done
        logs = [batches(checkpoint / log) for log in ("offsets", "commits")]
        assert logs[0] == logs[1]


def batches(log: Path) -> set[int]:
    return {int(entry.name) for entry in log.iterdir() if entry.name.isdigit()}


# Over Spark Connect


@a_started_bundle
@pytest.mark.spark
def test_started_by_python_alone_it_runs_on_a_server(connect_server: ConnectServer, tmp_path: Path) -> None:
    """The server's Python has what the bundle depends on, and none of its modules."""
    to = tmp_path / "dist" / "clicks-1.4.0"
    bundle_folder(project(tmp_path / "project", "clicks"), to, "clicks.yaml")
    there = {**os.environ, "SPARK_REMOTE": connect_server.url, "JAVA_HOME": "/nowhere", "HOME": str(tmp_path)}
    for files in (2, 3):
        clicks(tmp_path / "in", files)
        done = subprocess.run(
            [sys.executable, "-P", to / "main.py", "-p", "path=in"],
            cwd=tmp_path,
            env=there,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-6000:]
    code = (
        "import json, sys; from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()\n"
        "print(json.dumps([list(row) for row in spark.read.format('delta').load(sys.argv[1]).collect()]))"
    )
    found = connect_server.python(code, tmp_path / "out" / "clicks")
    assert sorted(map(tuple, found)) == expected(3)


# On a cluster


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a bundle with all that it needs."""
    folder = tmp_path_factory.mktemp("submitted")
    to = folder / "dist" / "clicks-1.4.0"
    bundle_folder(project(folder / "project", "clicks"), to, "clicks.yaml")
    return to


@a_started_bundle
@pytest.mark.spark
@pytest.mark.parametrize("master", ["cluster", "local[2]"])
def test_submitted_where_python_has_only_pyspark(
    submitted: Path,
    tmp_path: Path,
    cluster: Cluster,
    spark: SparkSession,
    master: str,
) -> None:
    clicks(tmp_path / "in")
    url = cluster.master if master == "cluster" else master
    done = cluster.run(
        *(
            "bash",
            submitted / "submit.sh",
            "--master",
            url,
            "--driver-memory",
            "1g",
            "--executor-memory",
            "800m",
        ),
        *("--conf", "spark.ui.enabled=false", "--", "-p", "path=in"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    assert rows(spark, tmp_path / "out/clicks") == expected()


@a_killed_program
@pytest.mark.spark
def test_two_runs_forced_onto_one_checkpoint_write_every_row_once(
    submitted: Path,
    tmp_path: Path,
    cluster: Cluster,
    spark: SparkSession,
) -> None:
    """The second one comes by another path, as by another mount: it sees neither the lease nor the lock.

    With twenty micro-batches they are at it together, whichever starts first.
    """
    clicks(tmp_path / "in", 20)
    (tmp_path / "a/clicks").mkdir(parents=True)
    (tmp_path / "b/clicks").mkdir(parents=True)
    (tmp_path / "b/clicks/table").symlink_to(tmp_path / "a/clicks/table", target_is_directory=True)
    (tmp_path / "a/clicks/table").mkdir()
    started = []
    for checkpoints in ("a", "b"):
        command = [
            *("bash", str(submitted / "submit.sh"), "--master", "local[1]", "--driver-memory", "1g"),
            *(
                "--conf",
                "spark.ui.enabled=false",
                "--",
                "-p",
                "path=in",
                "-p",
                "files=1",
                "-p",
                f"checkpoints={checkpoints}",
            ),
        ]
        log = (tmp_path / f"{checkpoints}.log").open("w")
        started.append(
            (subprocess.Popen(command, cwd=tmp_path, env=cluster.environment, stdout=log, stderr=log), log)
        )
    statuses = []
    for process, log in started:
        statuses.append(process.wait(600))
        log.close()
    said = [(tmp_path / f"{name}.log").read_text() for name in "ab"]
    assert sorted(statuses) == [0, 1], (said[0][-3000:], said[1][-3000:])
    assert "error[GB508]" in said[statuses.index(1)]  # its query failed, and not something before it
    assert rows(spark, tmp_path / "out/clicks") == expected(20)
