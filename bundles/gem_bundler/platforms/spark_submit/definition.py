"""A bundle's `submit.sh`: the bundle's `spark-submit`, from any folder and for any cluster manager."""

from __future__ import annotations

import re
from shlex import quote
from typing import TYPE_CHECKING

from gem_bundle import Finding
from gem_bundler.platforms.common import (
    assignments,
    check_common,
    check_left_out,
    job_of,
    no_wheels,
    nothing_asked,
    secret_variable,
    secrets_of,
    spark_settings,
    start_arguments,
)
from gem_bundler.platforms.spark_submit.template import TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundler.bundle.model import Bundle
    from gem_bundler.job.section import Job

__all__ = ["asked", "check", "files", "wheels"]

# The archive of dependencies has them unpacked.
wheels, asked = no_wheels, nothing_asked


def check(bundle: Bundle) -> Iterator[Finding]:
    """What `spark-submit` can't do of a bundle's job.

    A finding's `option` is the way to the key of the `job:` section.
    """
    job = job_of(bundle)
    yield from check_common(bundle, job, complete=False)
    cluster = job.cluster
    if cluster.deploy_mode == "cluster" and (cluster.master or "").startswith(("spark:", "local")):
        where = "a standalone cluster" if (cluster.master or "").startswith("spark:") else "a local master"
        yield Finding(
            "GB612",
            f"`deploy_mode: cluster` isn't there for Python on {where}",
            "Set `deploy_mode: client`, and start submit.sh on a machine near the cluster that stays up.",
            option=("cluster", "deploy_mode"),
        )
    if cluster.workers == 0 and "workers" in cluster.model_fields_set:
        yield Finding(
            "GB612",
            "`workers: 0` is a single node: with spark-submit that is the master `local[*]`",
            "Set `master: local[*]` and leave out `workers`.",
            option=("cluster", "workers"),
        )
    yield from check_left_out(
        job,
        ("run_as", "permissions", "notifications", "timeout", "stop_timeout"),
        "spark-submit",
        "Whatever starts submit.sh has to see to it.",
    )
    yield from check_left_out(
        job,
        ("schedule", "keep_alive", "continuous"),
        "spark-submit",
        "Let cron or a service manager start submit.sh; its --help has the line for the crontab.",
    )


def files(bundle: Bundle) -> dict[str, bytes]:
    """The job definition by its path within the bundle's folder; it has to be executable."""
    return {"submit.sh": script(bundle).encode()}


def script(bundle: Bundle) -> str:
    """The text of `submit.sh`."""
    job = job_of(bundle)
    started = bundle.pipelines[0]
    vendored = [f"jars/{jar.file}" for jar in bundle.jars if bundle.vendored]
    packages = [jar.coordinate for jar in bundle.jars if not bundle.vendored]
    settings = {**_settings(bundle, job), **spark_settings(started)}
    filled = {
        "@TITLE@": _comment(f"{bundle.name} {bundle.version}"),
        "@USAGE@": _usage(bundle, job),
        "@ARCHIVE@": quote(bundle.archive),
        "@DEPS@": quote(bundle.deps or ""),
        "@JARS@": _words(vendored),
        "@PACKAGES@": quote(",".join(packages)),
        "@MASTER@": quote(job.cluster.master or ""),
        "@DEPLOY_MODE@": quote(job.cluster.deploy_mode or ""),
        "@OPTIONS@": _words(_options(job)),
        "@SETTINGS@": _words([f"{key}={value}" for key, value in settings.items()]),
        "@VALUES@": _words(assignments(started, job)),
        "@ARGUMENTS@": _words(start_arguments(bundle, started, job, root=job.root, values=False)),
    }
    return re.sub("@[A-Z_]+@", lambda mark: filled[mark[0]], TEMPLATE)


def _comment(text: str) -> str:
    return " ".join(text.split())


def _words(words: Sequence[str]) -> str:
    return "".join(f"\n    {_quoted(word)}" for word in words) + ("\n" if words else "")


def _quoted(word: str) -> str:
    # A comma between the words of an array looks like a mistake, to people and to shellcheck.
    return f"'{word}'" if "," in word and quote(word) == word else quote(word)


def _options(job: Job) -> list[str]:
    cluster = job.cluster
    named = {
        "--driver-cores": cluster.driver.cores,
        "--driver-memory": cluster.driver.memory,
        "--executor-cores": cluster.executor.cores,
        "--executor-memory": cluster.executor.memory,
    }
    return [word for name, value in named.items() if value is not None for word in (name, str(value))]


def _settings(bundle: Bundle, job: Job) -> dict[str, str]:
    cluster = job.cluster
    settings = {"spark.app.name": job.name or bundle.name}
    if bundle.deps is not None:
        # Executors start in the folder that the archive is unpacked in, and so does YARN's driver.
        settings["spark.executorEnv.PYTHONPATH"] = "./deps"
        settings["spark.yarn.appMasterEnv.PYTHONPATH"] = "./deps"
    if "workers" in cluster.model_fields_set:
        if isinstance(cluster.workers, int):
            settings["spark.executor.instances"] = str(cluster.workers)
        else:
            settings["spark.dynamicAllocation.enabled"] = "true"
            settings["spark.dynamicAllocation.shuffleTracking.enabled"] = "true"
            settings["spark.dynamicAllocation.minExecutors"] = str(cluster.workers.min)
            settings["spark.dynamicAllocation.maxExecutors"] = str(cluster.workers.max)
    if job.restarts.max:
        settings["spark.yarn.maxAppAttempts"] = str(job.restarts.max + 1)
    if job.tags:
        settings["spark.yarn.tags"] = ",".join(f"{key}={value}" for key, value in job.tags.items())
    return settings


def _usage(bundle: Bundle, job: Job) -> str:
    # Each line begins with words of our own: one that is the end mark would end the here-document.
    about = _comment(bundle.description)
    text = f"{bundle.name} {bundle.version}{': ' if about else ''}{about}\n"
    parameters = [parameter for pipeline in bundle.pipelines[:1] for parameter in pipeline.parameters]
    if parameters:
        text += "\nParameters (-p NAME=VALUE):\n"
        for parameter in parameters:
            how = "must be given" if parameter.required else f"default {parameter.default}"
            about = f"  {_comment(parameter.description)}" if parameter.description else ""
            text += f"  {parameter.name} ({parameter.type}, {how}){about}\n"
    secrets = secrets_of(bundle.pipelines)
    if secrets:
        text += "\nSecrets, from the driver's environment:\n"
        text += "".join(f"  {secret_variable(name)}\n" for name in secrets)
    if job.timetable is not None:
        text += f"\nCrontab (times in {job.timetable.timezone}):\n"
        text += f"  {job.timetable.cron} /path/to/submit.sh\n"
    return text.rstrip("\n")
