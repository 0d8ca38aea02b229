"""A bundle's job on Databricks, carried out as a runtime does it that has never heard of gem-bundle."""

from __future__ import annotations

import inspect
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.bundles.making import write_files
from tests.bundles.platforms.databricks_runtime import DBUTILS, Runtime, upload
from tests.bundles.submitting import build
from tests.samples import in_another_place

if TYPE_CHECKING:
    from pathlib import Path

    from tests.connect_server import ConnectServer

PIPELINE = """\
pipeline: class_sizes
version: 1.0.0
parameters:
  least: 1
sources:
  sizes:
    gem: file
    options: {{format: json, path: incoming, schema: "school string, size int"}}
transforms:
  hidden:
    gem: python
    input: sizes
    options: {{function: "school_jobs:hide", arguments: {{salt: "${{secret:schools/salt}}", least: "${{least}}"}}}}
targets:
  files:
    gem: file
    input: hidden
    trigger: {{available_now: true}}
    options: {{format: json, path: hidden}}
job:
  schedule: "@hourly"
  root: {root}
  parameters: {{least: 2}}
  cluster: {cluster}
"""
CLASSIC = "{node_type: i3.xlarge, spark_version: 19.x-scala2.13}"
SERVERLESS = '{serverless: true, serverless_version: "5"}'
# The function runs on the driver; the UDF on workers, which find the second module, and pydantic's native
# part, where pip has put them.
JOBS = """\
from pyspark.sql.functions import col, lit, udf

from school_words import seal


def hide(sizes, salt, least):
    return sizes.where(col("size") >= least).select(udf(seal)("school", lit(salt)).alias("school"), "size")
"""
WORDS = """\
from hashlib import sha256


def seal(school, salt):
    import pydantic_core

    return sha256((school + salt).encode()).hexdigest() if pydantic_core.__version__ else None
"""
SALT = "pepper and salt"


def arrive(root: Path, number: int) -> None:
    """A file with two rows, whole when it is seen."""
    rows = [{"school": f"s{number}", "size": size} for size in (1, number)]
    (root / "incoming").mkdir(parents=True, exist_ok=True)
    draft = root / f"{number}.json"
    draft.write_text("\n".join(map(json.dumps, rows)))
    draft.rename(root / "incoming" / draft.name)


def hidden(root: Path) -> list[dict[str, Any]]:
    """What the job has written."""
    texts = [file.read_text() for file in (root / "hidden").glob("*.json")]
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    return sorted(rows, key=lambda row: int(row["size"]))


def bundle(folder: Path, cluster: str) -> Path:
    """The bundle of the pipeline, whose data lie in a folder beside it."""
    project = write_files(
        folder / "project",
        {
            "schools.yaml": PIPELINE.format(root=folder / "Volumes", cluster=cluster),
            "school_jobs.py": JOBS,
            "school_words.py": WORDS,
        },
    )
    return build(project / "schools.yaml", "--for", "databricks")


def twice(runtime: Runtime, root: Path, task: dict[str, Any], server: ConnectServer | None = None) -> None:
    """Run a job's task, and once more as after a restart: another process, another session."""
    for number in (2, 3):
        arrive(root, number)
        done = runtime.call(task, server=server)
        assert done.returncode == 0, done.stdout[-6000:]
        assert "the session has 3 rows" in done.stdout
        assert SALT not in done.stdout

    assert hidden(root) == [
        {"school": sha256(f"s{number}{SALT}".encode()).hexdigest(), "size": number} for number in (2, 3)
    ]
    commits = root / "checkpoints" / "class_sizes" / "files" / "commits"
    assert {path.name for path in commits.iterdir() if path.name.isdigit()} == {"0", "1"}


@in_another_place
@pytest.mark.spark
def test_a_job_runs_on_a_workspace_that_has_never_heard_of_gem_bundle(tmp_path: Path) -> None:
    from databricks.sdk.dbutils import _SecretsUtil
    from databricks.sdk.service import jobs

    # The stand-in gives secrets as Databricks does.
    ours: dict[str, Any] = {}
    exec(compile(DBUTILS, "runtime.py", "exec", dont_inherit=True), ours)
    assert inspect.signature(ours["dbutils"].secrets.get) == inspect.signature(_SecretsUtil(None).get)

    made = bundle(tmp_path, CLASSIC)
    job = json.loads((made / "databricks" / "job.json").read_text())
    assert jobs.JobSettings.from_dict(job).as_dict() == job
    # The same wheels for Databricks' own CLI, by paths that lead from the resource's folder into the bundle.
    resource = made / "databricks" / "resources" / "class_sizes.job.yml"
    (deployed,) = yaml.safe_load(resource.read_text())["resources"]["jobs"]["class_sizes"]["tasks"]
    (task,) = job["tasks"]
    for there, here in zip(task["libraries"], deployed["libraries"], strict=True):
        assert (resource.parent / here["whl"]).is_file()
        assert there["whl"].endswith(here["whl"].removeprefix("../.."))

    upload(made, job)
    runtime = Runtime(tmp_path / "runtime", {"schools": {"salt": SALT}})
    runtime.install([library["whl"] for library in task["libraries"]])
    twice(runtime, tmp_path / "Volumes" / "prod", task["python_wheel_task"])

    # Whatever the entry point returns, a task that fails has to raise.
    failed = runtime.call(task["python_wheel_task"], "--target", "file", session=False)
    assert failed.returncode == 1
    assert "Did you mean `files`?" in failed.stdout
    assert "class-sizes failed with status 1; what it printed says why." in failed.stdout
    assert "Traceback" not in failed.stdout


@in_another_place
@pytest.mark.spark
def test_a_job_runs_on_serverless_compute(jars: list[Path], tmp_path: Path) -> None:
    made = bundle(tmp_path, SERVERLESS)
    job = json.loads((made / "databricks" / "job.json").read_text())
    (task,), (environment,) = job["tasks"], job["environments"]
    assert task["environment_key"] == environment["environment_key"]

    upload(made, job)
    runtime = Runtime(tmp_path / "runtime", {"schools": {"salt": SALT}})
    runtime.install(environment["spec"]["dependencies"])
    with runtime.serverless(jars) as server:
        twice(runtime, tmp_path / "Volumes" / "prod", task["python_wheel_task"], server)
