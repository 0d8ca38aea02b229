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
  cluster: {{node_type: i3.xlarge, spark_version: 19.x-scala2.13}}
"""
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


@in_another_place
@pytest.mark.spark
def test_a_job_runs_on_a_workspace_that_has_never_heard_of_gem_bundle(tmp_path: Path) -> None:
    from databricks.sdk.dbutils import _SecretsUtil
    from databricks.sdk.service import jobs

    # The stand-in gives secrets as Databricks does.
    ours: dict[str, Any] = {}
    exec(compile(DBUTILS, "runtime.py", "exec", dont_inherit=True), ours)
    assert inspect.signature(ours["dbutils"].secrets.get) == inspect.signature(_SecretsUtil(None).get)

    project = write_files(
        tmp_path / "project",
        {
            "schools.yaml": PIPELINE.format(root=tmp_path / "Volumes"),
            "school_jobs.py": JOBS,
            "school_words.py": WORDS,
        },
    )
    bundle = build(project / "schools.yaml", "--for", "databricks")
    job = json.loads((bundle / "databricks" / "job.json").read_text())
    assert jobs.JobSettings.from_dict(job).as_dict() == job
    # The same wheels for Databricks' own CLI, by paths that lead from the resource's folder into the bundle.
    resource = bundle / "databricks" / "resources" / "class_sizes.job.yml"
    (deployed,) = yaml.safe_load(resource.read_text())["resources"]["jobs"]["class_sizes"]["tasks"]
    (task,) = job["tasks"]
    for there, here in zip(task["libraries"], deployed["libraries"], strict=True):
        assert (resource.parent / here["whl"]).is_file()
        assert there["whl"].endswith(here["whl"].removeprefix("../.."))

    upload(bundle, job)
    runtime = Runtime(tmp_path / "runtime", {"schools": {"salt": SALT}})
    runtime.install(task["libraries"])
    root = tmp_path / "Volumes" / "prod"
    for number in (2, 3):
        # The second time, as after a restart of the cluster: another process, another session.
        arrive(root, number)
        done = runtime.call(task["python_wheel_task"])
        assert done.returncode == 0, done.stdout[-6000:]
        assert "the session has 3 rows" in done.stdout
        assert SALT not in done.stdout

    assert hidden(root) == [
        {"school": sha256(f"s{number}{SALT}".encode()).hexdigest(), "size": number} for number in (2, 3)
    ]
    commits = root / "checkpoints" / "class_sizes" / "files" / "commits"
    assert {path.name for path in commits.iterdir() if path.name.isdigit()} == {"0", "1"}

    # Whatever the entry point returns, a task that fails has to raise.
    failed = runtime.call(task["python_wheel_task"], "--target", "file", session=False)
    assert failed.returncode == 1
    assert "Did you mean `files`?" in failed.stdout
    assert "class-sizes failed with status 1; what it printed says why." in failed.stdout
    assert "Traceback" not in failed.stdout
