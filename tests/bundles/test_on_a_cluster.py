"""Bundles from end to end: built by the command, run on a cluster whose Python has nothing but pyspark."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.bundles.cluster import Cluster, report_of
from tests.bundles.installing import Made
from tests.bundles.making import write_files
from tests.bundles.submitting import build
from tests.integration.flights import EXAMPLES, Flights, Run, lay_out
from tests.samples import in_another_place

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


pytestmark = pytest.mark.spark

DAYS = 3
# For two executors of one core: by default Spark makes 200 tasks of a shuffle, and Delta 50 of a snapshot.
SMALL = (
    *("--driver-memory", "1g", "--executor-memory", "800m"),
    *("--conf", "spark.ui.enabled=false"),
    *("--conf", "spark.sql.shuffle.partitions=2"),
    *("--conf", "spark.databricks.delta.snapshotPartitions=2"),
)


def submit(cluster: Cluster, bundle: Path, *pipeline_options: str | Path, cwd: Path) -> dict[str, Any]:
    """Run a bundle on the cluster to its end; returns the run's report."""
    done = cluster.run(
        *("bash", bundle / "submit.sh", "--master", cluster.master, *SMALL, "--", *pipeline_options),
        cwd=cwd,
    )
    return report_of(done)


@pytest.mark.programs
def test_a_line_has_no_other_within_it(tmp_path: Path) -> None:
    says = "import sys; print('{', end='', flush=True); print('log', file=sys.stderr, flush=True); print('}')"
    done = Cluster("", tmp_path, {}).run(sys.executable, "-c", says, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("{}\n", "log\n")


def rows(spark: SparkSession, table: Path) -> list[tuple[Any, ...]]:
    found = spark.read.format("delta").load(str(table)).collect()
    return sorted((tuple(row) for row in found), key=str)


# The example


@pytest.mark.matrix
@in_another_place
def test_the_example_writes_the_table_that_a_run_writes(
    tmp_path: Path, cluster: Cluster, spark: SparkSession
) -> None:
    project, root, elsewhere = (tmp_path / name for name in ("project", "root", "elsewhere"))
    for folder in (project, root, elsewhere):
        folder.mkdir()
    lay_out("flights", project)
    prepare = [sys.executable, str(EXAMPLES / "flights/prepare.py"), "--to", str(project / "data")]
    subprocess.run([*prepare, "--days", str(DAYS)], check=True, capture_output=True)
    shutil.copytree(project / "data", root / "data")  # with the times, which are the order of the files
    # One day in each micro-batch: several of them depend on the state that others have left.
    one_by_one = ("-p", "files_per_trigger=1")

    bundle = build(project / "flights.yaml")
    report = submit(cluster, bundle, "--root", root, *one_by_one, cwd=elsewhere)
    with Run(project / "flights.yaml", *one_by_one, log=tmp_path / "run.log") as run:
        assert run.wait() == 0, "".join(run.said)

    found = rows(spark, root / "out/hours")
    assert found == rows(spark, project / "out/hours")
    assert len(found) == len(Flights(project / "data").hours()) > 100
    # Each day in a micro-batch, and one without data that ends the windows which the last day closed.
    assert report["targets"]["table"]["micro_batches"] == DAYS + 1
    assert (root / "checkpoints/flights/table/commits").is_dir()
    assert not (elsewhere / "out").exists()
    assert not (elsewhere / "checkpoints").exists()


# A gem of somebody else's

# Its UDF is found by its name, and needs a second distribution. It tells where it runs: an executor of a
# standalone cluster works in `<the worker's folder>/app-…/<number>`.
SHOUTING = '''\
"""Words, made louder."""

from pathlib import Path

from gem_bundle import Field, Options, Transform, hookimpl


@hookimpl
def gem_bundle_register_gems(register):
    register("transform", "shout", "example_shouting_gems:Shout")


class ShoutOptions(Options):
    column: str = Field(description="The column with the words.", columns="names")


class Shout(Transform[ShoutOptions]):
    """Say a column's words louder, and where they were said."""

    example = {"column": "word"}

    def apply(self, words):
        from pyspark.sql.functions import col, udf

        column = self.options.column
        return words.select("id", udf(louder)(col(column)).alias(column), udf(where)().alias("place"))


def louder(word):
    from example_loud_letters import loud

    return f"{loud(word)}!"


def where():
    import example_loud_letters

    here = Path(example_loud_letters.__file__).absolute().is_relative_to(Path.cwd())
    return Path.cwd().parent.name if here else example_loud_letters.__file__
'''
LETTERS = Made("example-loud-letters", "2.0", files={"example_loud_letters.py": b"loud = str.upper\n"})
GEMS = Made(
    "example-shouting-gems",
    "1.3",
    requires=("gem-bundle>=0.1", "example-loud-letters>=1"),
    files={"example_shouting_gems/__init__.py": SHOUTING.encode()},
    entry_points="[gem_bundle]\nshouting = example_shouting_gems\n",
)
WORDS = """\
pipeline: words
sources:
  spoken: {gem: file, options: {format: json, path: in, schema: "id int, word string"}}
transforms:
  loud: {gem: shout, input: spoken, options: {column: word}}
targets:
  table: {gem: delta, input: loud, trigger: {available_now: true}, options: {path: out/words}}
"""


@in_another_place
def test_a_gem_of_another_distribution_runs_on_executors(
    tmp_path: Path, cluster: Cluster, spark: SparkSession
) -> None:
    index, site = tmp_path / "index", tmp_path / "site"
    for made in (LETTERS, GEMS):
        made.publish(index)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    what = [f"--find-links={index}", f"--target={site}", GEMS.name, LETTERS.name]
    subprocess.run([*install, *what], check=True, capture_output=True)
    project = write_files(tmp_path / "project", {"words.yaml": WORDS})
    spoken = [{"id": number, "word": f"w{number}"} for number in range(100)]
    lines = "".join(f"{json.dumps(word)}\n" for word in spoken)
    root = write_files(tmp_path / "root", {"in/words.json": lines})

    bundle = build(project / "words.yaml", python_path=site, PIP_FIND_LINKS=str(index))
    with tarfile.open(bundle / "deps.tar.gz") as deps:
        packed = set(deps.getnames())
    submit(cluster, bundle, cwd=root)

    assert {
        "example_shouting_gems/__init__.py",
        "example_shouting_gems-1.3.dist-info/entry_points.txt",
        "example_loud_letters.py",
        "example_loud_letters-2.0.dist-info/METADATA",
    } <= packed
    manifest = json.loads((bundle / "bundle.json").read_text())
    assert {
        "kind": "transform",
        "name": "shout",
        "distribution": GEMS.name,
        "version": GEMS.version,
    } in manifest["gems"]
    found = rows(spark, root / "out/words")
    assert sorted(row[:2] for row in found) == [(word["id"], f"W{word['id']}!") for word in spoken]
    places = {place for _, _, place in found}
    assert len(places) == 1
    assert places.pop().startswith("app-")
