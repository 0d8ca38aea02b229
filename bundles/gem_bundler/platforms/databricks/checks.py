"""What Databricks can't do of a bundle's job, and what would go wrong there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gem_bundle import Finding
from gem_bundle.diagnostics import listed_names
from gem_bundle.types import is_remote
from gem_bundler.bundle.target_platform import Target
from gem_bundler.job import cron
from gem_bundler.job.runtimes import LEAST_RUNTIME, SPARK_OF_RUNTIME, runtime_of
from gem_bundler.platforms.common import (
    ENDING_TRIGGERS,
    check_common,
    check_left_out,
    check_root,
    job_of,
)
from gem_bundler.platforms.databricks.libraries import from_index, own_jars, wheels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundler.bundle.model import Bundle
    from gem_bundler.job.section import Job

TARGETS: dict[Literal["dev", "prod"], str] = {"dev": "development", "prod": "production"}
PYTHON_OF_RUNTIME = {13: "3.10", 14: "3.10", 15: "3.11", 16: "3.12", 17: "3.12"}
PYTHON_OF_SERVERLESS = {1: "3.10", 2: "3.11", 3: "3.12", 4: "3.12"}
_MOST_LISTED = 3
LEAST_SERVERLESS = 4  # the first one whose Spark is 4
# What a serverless session is known to let a job set.
SERVERLESS_SETTINGS = frozenset(
    {
        "spark.databricks.execution.timeout",
        "spark.sql.ansi.enabled",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.session.timeZone",
        "spark.sql.shuffle.partitions",
        "spark.sql.sources.partitionOverwriteMode",
    }
)


def check(bundle: Bundle) -> Iterator[Finding]:
    """What Databricks can't do of a bundle's job, and what would go wrong there.

    A finding's `option` is the way to the key of the `job:` section.
    """
    profiles = [profile_of(bundle, target) for target in TARGETS]
    yield from dict.fromkeys(finding for profile in profiles for finding in _check(bundle, profile))


def profile_of(bundle: Bundle, target: str) -> str | None:
    """The profile of a target: the one the bundle is built with, else the one with the target's name."""
    in_job = bundle.job is not None and target in bundle.job.profiles
    return target if bundle.profile is None and (in_job or target in bundle.profiles) else bundle.profile


def _check(bundle: Bundle, profile: str | None) -> Iterator[Finding]:
    job = job_of(bundle, profile)
    # What is required is known for the bundle's profile only; another one has values of its own.
    yield from check_common(bundle, job, complete=profile == bundle.profile or profile not in bundle.profiles)
    yield from check_left_out(
        job,
        ("stop_timeout",),
        "Databricks",
        "A run that is cancelled there ends at once; the next one goes on.",
    )
    yield from check_root(bundle, job, "Databricks", "/Volumes/main/streams/clicks")
    yield from _check_separate(bundle)
    if job.cluster.serverless:
        yield from _check_serverless(bundle, job)
    else:
        yield from _check_cluster(bundle, job)
    timetable = job.timetable
    if timetable is not None and cron.parse(timetable.cron).has_two_kinds_of_days:
        yield Finding(
            "GB609",
            f"`{timetable.cron}` names days of the month and days of the week; Databricks takes one of them",
            "Put `*` for one of the two.",
            option="schedule",
        )
    yield from _check_index(bundle, job)


def _check_index(bundle: Bundle, job: Job) -> Iterator[Finding]:
    if not from_index(bundle, job):
        return
    if bundle.deps is None and "libraries" in job.model_fields_set and job.libraries == "bundle":
        yield Finding(
            "GB617",
            "`libraries: bundle` names what is in the bundle, and a thin bundle has no dependencies in it",
            "Build without --thin; or set `libraries: index`.",
            option="libraries",
        )
    else_ = "build without --thin" if bundle.deps is None else "set `libraries: bundle`"
    for requirement in bundle.missing:
        name, _, version = requirement.partition("==")
        yield Finding(
            "GB617",
            f"the job would install `{name}` {version} from a package index, and the one in use here has no "
            "such version",
            "Publish it in the workspace's index, and let pip ask that one here too (PIP_INDEX_URL); or "
            f"{else_}, so that the job installs what is in the bundle.",
            option="libraries" if "libraries" in job.model_fields_set else None,
        )


def _check_separate(bundle: Bundle) -> Iterator[Finding]:
    for pipeline in bundle.pipelines:
        place = pipeline.checkpoints
        absolute = is_remote(place) or place.startswith(("/", "file:"))
        if pipeline.mode == "stream" and absolute and "${" not in place:
            yield Finding(
                "GB607",
                f"the checkpoints of `{pipeline.name}` are in `{place}` for the targets dev and prod alike: "
                "each would go on where the other one stopped",
                "Write `checkpoints:` relative, and give the folder above it as `job.root`: the targets get "
                "folders of their own in it.",
            )


def _check_serverless(bundle: Bundle, job: Job) -> Iterator[Finding]:
    if job.continuous:
        yield Finding(
            "GB601",
            "`continuous` needs a cluster: serverless compute only runs what ends by itself",
            "Use `keep_alive` or a `schedule`, or name a cluster's `node_type` and `spark_version`.",
            option="continuous",
        )
    for pipeline in bundle.pipelines:
        for target in pipeline.targets:
            if pipeline.mode == "stream" and target.trigger not in ENDING_TRIGGERS:
                trigger = target.trigger if target.trigger != "default" else "as fast as possible"
                yield Finding(
                    "GB601",
                    f"target `{target.id}` of `{pipeline.name}` has the trigger `{trigger}`: serverless "
                    "compute refuses streams that don't end",
                    "Give it `trigger: {available_now: true}`, with a `schedule`; or use a cluster.",
                    option=("cluster", "serverless"),
                )
        refused = sorted({key for key, _ in pipeline.spark} - SERVERLESS_SETTINGS)
        if refused:
            yield Finding(
                "GB603",
                f"serverless compute may refuse `{'`, `'.join(refused)}` under `spark:` of `{pipeline.name}`",
                f"It is known to take `{'`, `'.join(sorted(SERVERLESS_SETTINGS))}`; or use a cluster.",
                option=("cluster", "serverless"),
                severity="warning",
            )
    own = own_jars(bundle)
    if own:
        yield Finding(
            "GB602",
            f"serverless compute takes no jars, and the gems need `{'`, `'.join(own)}`",
            "Use a cluster: name its `node_type` and `spark_version` instead of `serverless`.",
            option=("cluster", "serverless"),
        )
    version = int(job.cluster.serverless_version)
    if version < LEAST_SERVERLESS:
        yield Finding(
            "GB604",
            f"version {version} of the serverless environment is older than Spark 4",
            f'Set `serverless_version: "{LEAST_SERVERLESS}"` or a newer one.',
            option=("cluster", "serverless_version"),
        )
    yield from _check_python(bundle, job, PYTHON_OF_SERVERLESS.get(version), f"environment {version}")


def _check_cluster(bundle: Bundle, job: Job) -> Iterator[Finding]:
    cluster, missing = job.cluster, []
    if cluster.node_type is None and cluster.pool is None and cluster.policy is None:
        missing.append("`node_type`")
    if cluster.spark_version is None:
        missing.append("`spark_version`")
    if missing:
        yield Finding(
            "GB605",
            f"the job needs a cluster on Databricks, and `job.cluster` has no {' and no '.join(missing)}",
            "Choose from `databricks clusters list-node-types` and `databricks clusters spark-versions`; or "
            "set `serverless: true` where every target's trigger is `available_now`.",
            option="cluster",
        )
    major = runtime_of(cluster.spark_version)
    if major is None:
        return
    if major < LEAST_RUNTIME:
        spark = SPARK_OF_RUNTIME.get(major, "an old Spark")
        yield Finding(
            "GB604",
            f"runtime `{cluster.spark_version}` is Spark {spark}: gem-bundle needs Spark 4",
            f"Take runtime {LEAST_RUNTIME} or a newer one; {max(SPARK_OF_RUNTIME)} is Spark "
            f"{SPARK_OF_RUNTIME[max(SPARK_OF_RUNTIME)]}.",
            option=("cluster", "spark_version"),
        )
    yield from _check_python(bundle, job, PYTHON_OF_RUNTIME.get(major), f"runtime {major}")


def _check_python(bundle: Bundle, job: Job, python: str | None, platform: str) -> Iterator[Finding]:
    if python is None or python == bundle.runtime.python:
        return
    there = Target(python, bundle.runtime.platform)
    names = [path.rpartition("/")[2] for path in wheels(bundle, job)]
    refused = [name for name in names if not there.runs(name)]
    if refused:
        yield Finding(
            "GB611",
            f"Databricks' {platform} has Python {python}, which doesn't install "
            f"{listed_names(refused, most=_MOST_LISTED)}: the bundle is built for {bundle.runtime.python}",
            f"Build it with `--python {python}`; or with Python {python} itself, which tests it too.",
        )
    else:
        yield Finding(
            "GB611",
            f"Databricks' {platform} has Python {python}; the bundle is built for {bundle.runtime.python}",
            f"Build it with Python {python}, with which it is then tested too.",
            severity="warning",
        )
