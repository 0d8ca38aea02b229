"""What Databricks can't do of a bundle's job, and what would go wrong there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from gem_bundle import Finding
from gem_bundle.types import is_remote
from gem_bundler.job import cron
from gem_bundler.platforms.common import (
    ENDING_TRIGGERS,
    check_common,
    check_left_out,
    check_root,
    installed_requirements,
    job_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundler.bundle.model import Bundle, LockedJar
    from gem_bundler.job.section import Cluster, Job

TARGETS: dict[Literal["dev", "prod"], str] = {"dev": "development", "prod": "production"}
# The Spark of a runtime by its major version (Databricks' release notes, as of 2026).
SPARK_OF_RUNTIME = {13: "3.4", 14: "3.5", 15: "3.5", 16: "3.5", 17: "4.0", 18: "4.1", 19: "4.2"}
PYTHON_OF_RUNTIME = {13: "3.10", 14: "3.10", 15: "3.11", 16: "3.12", 17: "3.12"}
PYTHON_OF_SERVERLESS = {1: "3.10", 2: "3.11", 3: "3.12", 4: "3.12"}
LEAST_RUNTIME = 17
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
_PLATFORM_GROUPS = frozenset({"org.apache.spark", "io.delta", "org.apache.kafka"})
# Further jars that those bring along.
_PLATFORM_JARS = frozenset({"org.apache.commons:commons-pool2", "org.antlr:antlr4-runtime"})


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
        yield from _check_cluster(bundle, job.cluster)
    timetable = job.timetable
    if timetable is not None and cron.parse(timetable.cron).has_two_kinds_of_days:
        yield Finding(
            "GB609",
            f"`{timetable.cron}` names days of the month and days of the week; Databricks takes one of them",
            "Put `*` for one of the two.",
            option="schedule",
        )
    for requirement in installed_requirements(bundle):
        if "+" in requirement:
            name, _, version = requirement.partition("==")
            yield Finding(
                "GB617",
                f"the job would install `{name}` {version} from a package index, where no such version is",
                f"Install a released version of `{name}` (not an editable one), and build again.",
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
    yield from _check_python(bundle, PYTHON_OF_SERVERLESS.get(version), f"environment {version}")


def _check_cluster(bundle: Bundle, cluster: Cluster) -> Iterator[Finding]:
    missing = []
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
    runtime = re.match(r"(\d+)\.", cluster.spark_version or "")
    if runtime is None:
        return
    major = int(runtime[1])
    if major < LEAST_RUNTIME:
        spark = SPARK_OF_RUNTIME.get(major, "an old Spark")
        yield Finding(
            "GB604",
            f"runtime `{cluster.spark_version}` is Spark {spark}: gem-bundle needs Spark 4",
            f"Take runtime {LEAST_RUNTIME} or a newer one; {max(SPARK_OF_RUNTIME)} is Spark "
            f"{SPARK_OF_RUNTIME[max(SPARK_OF_RUNTIME)]}.",
            option=("cluster", "spark_version"),
        )
    yield from _check_python(bundle, PYTHON_OF_RUNTIME.get(major), f"runtime {major}")


def _check_python(bundle: Bundle, python: str | None, platform: str) -> Iterator[Finding]:
    if python is not None and python != bundle.runtime.python:
        yield Finding(
            "GB611",
            f"Databricks' {platform} has Python {python}; the bundle is built for {bundle.runtime.python}",
            f"Build it with Python {python}, with which it is then tested too.",
            severity="warning",
        )


def own_jars(bundle: Bundle) -> list[str]:
    """The coordinates of the jars that Databricks doesn't bring itself."""
    return [jar.coordinate for jar in bundle.jars if not _is_of_the_platform(jar)]


def _is_of_the_platform(jar: LockedJar) -> bool:
    group, artifact = jar.coordinate.split(":")[:2]
    return group in _PLATFORM_GROUPS or f"{group}:{artifact}" in _PLATFORM_JARS
