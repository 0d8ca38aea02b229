"""How long commands take that start a Spark, from the command on, against a bare PySpark script.

The cache is one of the benchmark's own, with the jars of the user's, so that what it measures is known: with an
archive of classes or without.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.timing import Comparison, clean_environment, command_seconds, in_turn

GEM_BUNDLE = Path(sys.executable).with_name("gem-bundle")
SCHEMA = "id bigint, at timestamp, team int, amount double"

PIPELINE = f"""
pipeline: start
spark: {{spark.master: 'local[2]', spark.driver.memory: 1g}}
sources:
  events: {{gem: file, options: {{format: json, path: events, schema: "{SCHEMA}"}}}}
targets:
  table: {{gem: delta, input: events, trigger: {{available_now: true}}, options: {{path: table}}}}
"""

TEST = """
tests:
  an event arrives:
    steps:
      - add: {events: [{id: 1, at: "2026-01-05 09:05:00", team: 1, amount: 1.5}]}
        expect: {table: [{id: 1, at: "2026-01-05 09:05:00", team: 1, amount: 1.5}]}
"""

# What a person would write for the same, printing when the first micro-batch has ended.
SCRIPT = f"""
import json, sys
from pyspark.sql import SparkSession

jars, folder = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "1g")
    .config("spark.jars", jars)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
query = (
    spark.readStream.schema("{SCHEMA}")
    .json(f"{{folder}}/events")
    .writeStream.format("delta")
    .option("checkpointLocation", f"{{folder}}/checkpoint")
    .trigger(availableNow=True)
    .start(f"{{folder}}/table")
)
while query.lastProgress is None:
    query.awaitTermination(0.02)
print(json.dumps({{"event": "progress"}}), file=sys.stderr, flush=True)
query.awaitTermination()
spark.stop()
"""

BARE = "a bare PySpark script with the same jars, to the end of its first micro-batch"
RUN = ("run", "start.yaml", "--log-format", "json")
PREVIEW = ("preview", "start.yaml", "events")


class Starts:
    """A project with one event, and the commands that start a Spark for it.

    Args:
        folder: Where it is made, with a cache of its own.
    """

    def __init__(self, folder: Path) -> None:
        from gem_bundle.run.jars import cache_folder

        self.folder = folder
        self.classes = folder / "cache" / "classes"
        self.classes.mkdir(parents=True)
        (folder / "events").mkdir()
        (folder / "events" / "1.json").write_text('{"id": 1, "at": "2026-01-05 09:05:00", "team": 1}\n')
        (folder / "start.yaml").write_text(PIPELINE)
        (folder / "start.test.yaml").write_text(TEST)
        (folder / "script.py").write_text(SCRIPT)
        self.environment = {"GEM_BUNDLE_CACHE": str(folder / "cache")}
        (cache_folder() / "jars").mkdir(parents=True, exist_ok=True)
        (folder / "cache" / "jars").symlink_to(cache_folder() / "jars")
        self.gem_bundle(*RUN)
        self.wait_for_archive()
        self.jars = self._jars()

    def _jars(self) -> str:
        listed = subprocess.run(
            [GEM_BUNDLE, "jars", "start.yaml", "--format", "json"],
            cwd=self.folder,
            env=clean_environment(self.environment),
            capture_output=True,
            text=True,
            check=True,
        )
        return ",".join(jar["path"] for jar in json.loads(listed.stdout))

    def gem_bundle(self, *command: str, until_progress: bool = False, **variables: str) -> float:
        """How long a command of gem-bundle takes, or until it says that a micro-batch has ended."""
        environment = {**self.environment, **variables}
        self._forget()
        if until_progress:
            return self._until_progress([GEM_BUNDLE, *command], environment)
        return command_seconds([GEM_BUNDLE, *command], environment, cwd=self.folder)

    def bare(self) -> float:
        """How long a script takes to the end of its first micro-batch."""
        self._forget()
        return self._until_progress([sys.executable, "script.py", self.jars, "."], self.environment)

    def wait_for_archive(self) -> None:
        """Wait until the archive of the last session is in its place, and nothing of it runs any more."""
        while not any(self.classes.glob("*.json")) or any(self.classes.glob("*.new")):
            time.sleep(0.1)

    def _forget(self) -> None:
        """Let the next run be a first one."""
        for name in ("table", "checkpoints", "checkpoint"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _until_progress(self, command: list[str | Path], environment: Mapping[str, str]) -> float:
        began = time.perf_counter()
        seconds = 0.0
        with subprocess.Popen(
            command,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=clean_environment(environment),
            text=True,
        ) as process:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if '"event": "progress"' in line and not seconds:
                    seconds = time.perf_counter() - began
        if process.returncode != 0 or not seconds:
            raise RuntimeError(f"{command} failed:\n{''.join(said)}")
        return seconds


def run(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle run` with an archive of classes in the cache."""
    starts = Starts(folder)
    found = in_turn(lambda: starts.gem_bundle(*RUN, until_progress=True), starts.bare, pairs)
    ours = "`gem-bundle run` to the end of the first micro-batch"
    return found.compared("start", ours, BARE, at_most=0.65)


def preview(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle preview` of a source, to its end."""
    starts = Starts(folder)
    with _an_archive_of_its_own(starts):
        starts.gem_bundle(*PREVIEW)
    found = in_turn(lambda: starts.gem_bundle(*PREVIEW), starts.bare, pairs)
    return found.compared("start-preview", "`gem-bundle preview` of a stream", BARE, at_most=0.5)


def test(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle test` with one step, to its end."""
    starts = Starts(folder)
    with _an_archive_of_its_own(starts):
        starts.gem_bundle("test")
    found = in_turn(lambda: starts.gem_bundle("test"), starts.bare, pairs)
    return found.compared("start-test", "`gem-bundle test` of one step", BARE, at_most=0.5)


def cold(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle run` that records an archive, against one that has nothing to do with any."""
    return _cold("start-cold", "`gem-bundle run`", RUN, pairs, folder)


def cold_preview(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle preview`, the same way."""
    return _cold("start-cold-preview", "`gem-bundle preview` of a stream", PREVIEW, pairs, folder)


def cold_test(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle test`, the same way."""
    return _cold("start-cold-test", "`gem-bundle test` of one step", ("test",), pairs, folder)


def _cold(name: str, what: str, command: Sequence[str], pairs: int, folder: Path) -> Comparison:
    starts = Starts(folder)
    settings = folder / "without.toml"
    earlier = os.environ.get("GEM_BUNDLE_SETTINGS")
    # As it was before there were archives, when brief sessions had all of Java's compilers too.
    before = """
[spark]
"spark.driver.defaultJavaOptions" = "-XX:+TieredCompilation"
[session]
class_archive = false
"""
    settings.write_text((Path(earlier).read_text() if earlier else "") + before)

    def recording() -> float:
        for file in starts.classes.iterdir():
            file.unlink()
        seconds = starts.gem_bundle(*command)
        starts.wait_for_archive()
        return seconds

    found = in_turn(recording, lambda: starts.gem_bundle(*command, GEM_BUNDLE_SETTINGS=str(settings)), pairs)
    ours = f"{what} without an archive of Spark's classes, which it leaves for the next one"
    return found.compared(name, ours, "the same with plain Java", at_most=1.02)


@contextmanager
def _an_archive_of_its_own(starts: Starts) -> Iterator[None]:
    """A session with other jars than the run's has another archive: wait for that one."""
    shutil.rmtree(starts.classes)
    starts.classes.mkdir()
    yield
    starts.wait_for_archive()
