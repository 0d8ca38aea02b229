"""A bundle's job on Databricks: as a Databricks bundle for its CLI, and as JSON for the Jobs API 2.2.

Both are made from the same model. What keeps streams whole is the same in every job: one run at a time,
none that waits for it, and checkpoints of their own for development and production.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle import GemError
from gem_bundler.job import cron
from gem_bundler.job.section import seconds
from gem_bundler.platforms.common import (
    job_of,
    spark_settings,
    start_arguments,
    validated,
    yaml_text,
)
from gem_bundler.platforms.databricks.checks import TARGETS, check, profile_of
from gem_bundler.platforms.databricks.libraries import own_jars, requirements
from gem_bundler.platforms.databricks.libraries import wheels as wheels_of
from gem_bundler.platforms.databricks.shapes import BundleFile, BundleJob, CreateJob, ResourceFile

if TYPE_CHECKING:
    from gem_bundler.bundle.model import Bundle, BundlePipeline
    from gem_bundler.job.section import Job, Principal, Recipients

__all__ = ["asked", "check", "files", "wheels"]

_LEVELS = {"view": "CAN_VIEW", "run": "CAN_MANAGE_RUN", "manage": "CAN_MANAGE", "owner": "IS_OWNER"}


def wheels(bundle: Bundle) -> list[str]:
    """The wheels that have to lie in the bundle's folder, by their paths there."""
    return list(dict.fromkeys(path for job in _jobs(bundle).values() for path in wheels_of(bundle, job)))


def asked(bundle: Bundle) -> list[str]:
    """What the job asks a package index for."""
    return list(dict.fromkeys(text for job in _jobs(bundle).values() for text in requirements(bundle, job)))


def files(bundle: Bundle) -> dict[str, bytes]:
    """The job definitions by their path within the bundle's folder.

    Raises:
        GemError: GB618 when Databricks wouldn't take what the `job:` section says.
    """
    jobs = _jobs(bundle)
    definitions = {target: _bundle_job(bundle, target, jobs[target]) for target in TARGETS}
    key = bundle.name
    content: dict[str, Any]
    if definitions["dev"] == definitions["prod"]:
        content = {"resources": {"jobs": {key: definitions["dev"]}}}
    else:
        content = {
            "targets": {
                target: {"resources": {"jobs": {key: definition}}}
                for target, definition in definitions.items()
            }
        }
    validated(ResourceFile, content, "Databricks' bundle")
    return {
        "databricks/databricks.yml": yaml_text(
            _BUNDLE_HEADER.format(name=bundle.name, version=bundle.version), _bundle_file(bundle, jobs)
        ),
        f"databricks/resources/{bundle.name}.job.yml": yaml_text(
            _JOB_HEADER.format(name=bundle.name, version=bundle.version), content
        ),
        "databricks/job.json": (
            json.dumps(_create_job(bundle, jobs["prod"]), indent=2, ensure_ascii=False) + "\n"
        ).encode(),
    }


def _jobs(bundle: Bundle) -> dict[Literal["dev", "prod"], Job]:
    return {target: job_of(bundle, profile_of(bundle, target)) for target in TARGETS}


_BUNDLE_HEADER = """
{name} {version} as a Databricks bundle.
Written by `gem-bundle build`: change the pipeline's `job:` section and build again instead of changing this.

In this folder:

    databricks bundle validate -t dev
    databricks bundle deploy -t dev
    databricks bundle run -t dev {name}
    databricks bundle deploy -t prod

In dev nothing starts by itself. The workspace is that of the CLI's profile, or of DATABRICKS_HOST.
"""
_JOB_HEADER = """
The job of {name} {version}. Written by `gem-bundle build`.

One run at a time, and none that waits for it: a stream has one checkpoint, and a second run on it fails.
Whether the job is paused is the target's business, in ../databricks.yml.
"""


def _bundle_file(bundle: Bundle, jobs: dict[Literal["dev", "prod"], Job]) -> dict[str, Any]:
    roots = {target: _root(job, target) for target, job in jobs.items() if job.root is not None}
    targets: dict[str, Any] = {}
    for target, mode in TARGETS.items():
        targets[target] = {
            "mode": mode,
            **({"default": True} if target == "dev" else {}),
            "presets": {
                "trigger_pause_status": "PAUSED" if target == "dev" else "UNPAUSED",
                "jobs_max_concurrent_runs": 1,
                "artifacts_dynamic_version": False,
            },
            **({"variables": {"root": roots[target]}} if target in roots else {}),
        }
    content: dict[str, Any] = {
        "bundle": {"name": bundle.name},
        "include": ["resources/*.yml"],
        "artifacts": {bundle.name: {"type": "whl", "files": [{"source": f"../{bundle.wheel}"}]}},
    }
    if roots:
        about = "What relative paths are relative to: data and checkpoints, apart for each target."
        content["variables"] = {"root": {"description": about}}
    content["targets"] = targets
    return validated(BundleFile, content, "Databricks' bundle")


def _root(job: Job, target: str) -> str:
    """A target's own root: in development, each user's."""
    own = "dev/${workspace.current_user.short_name}" if target == "dev" else target
    return f"{(job.root or '').rstrip('/')}/{own}"


def _bundle_job(bundle: Bundle, target: str, job: Job) -> dict[str, Any]:
    content = _job(
        bundle,
        job,
        folder="../..",
        root="${var.root}" if job.root is not None else None,
        profile=profile_of(bundle, target),
    )
    if job.permissions:
        content["permissions"] = [{**_holder(p), "level": _LEVELS[p.level]} for p in job.permissions]
    return validated(BundleJob, content, "Databricks")


def _create_job(bundle: Bundle, job: Job) -> dict[str, Any]:
    place = f"{(job.root or '/Workspace/Shared').rstrip('/')}/bundles/{bundle.name}"
    content = _job(
        bundle,
        job,
        folder=place,
        root=_root(job, "prod") if job.root is not None else None,
        profile=profile_of(bundle, "prod"),
    )
    if job.permissions:
        content["access_control_list"] = [
            {**_holder(p), "permission_level": _LEVELS[p.level]} for p in job.permissions
        ]
    which = f"{bundle.wheel} and the folder wheels" if wheels_of(bundle, job) else bundle.wheel
    content["description"] = f"{content['description']} Upload {which} first, to {place}."
    return validated(CreateJob, content, "Databricks' Jobs API")


def _job(bundle: Bundle, job: Job, *, folder: str, root: str | None, profile: str | None) -> dict[str, Any]:
    """The job.

    Args:
        bundle: The bundle.
        job: What its section says.
        folder: Where the bundle's folder is, for the paths of wheels.
        root: What relative paths are relative to.
        profile: The profile.
    """
    about = " ".join(bundle.description.split())
    content: dict[str, Any] = {
        "name": job.name or bundle.name,
        "description": f"{about} ({bundle.name} {bundle.version})".lstrip(),
    }
    if job.tags:
        content["tags"] = dict(job.tags)
    timetable = job.timetable
    if timetable is not None:
        content["schedule"] = {
            "quartz_cron_expression": _quartz(timetable.cron),
            "timezone_id": timetable.timezone,
        }
    if job.continuous:
        content["continuous"] = {"task_retry_mode": "ON_FAILURE"}
    content["max_concurrent_runs"] = 1
    content["queue"] = {"enabled": False}
    if job.timeout is not None:
        content["timeout_seconds"] = seconds(job.timeout)
    content.update(_notifications(job))
    if job.run_as is not None:
        content["run_as"] = _holder(job.run_as)
    if job.cluster.serverless:
        content["environments"] = [
            {
                "environment_key": "default",
                "spec": {
                    "environment_version": job.cluster.serverless_version,
                    "dependencies": [*_wheels(bundle, job, folder), *requirements(bundle, job)],
                },
            }
        ]
    else:
        content["job_clusters"] = [
            {"job_cluster_key": pipeline.name, "new_cluster": _new_cluster(pipeline, job)}
            for pipeline in bundle.pipelines
        ]
    content["tasks"] = [
        _task(
            bundle,
            pipeline,
            job,
            folder=folder,
            arguments=start_arguments(bundle, pipeline, job, root=root, profile=profile),
        )
        for pipeline in bundle.pipelines
    ]
    return content


def _wheels(bundle: Bundle, job: Job, folder: str) -> list[str]:
    """Where the wheels are that the job installs, in their order: the bundle's own needs the others."""
    return [f"{folder}/{path}" for path in (*wheels_of(bundle, job), bundle.wheel)]


def _quartz(text: str) -> str:
    try:
        return cron.parse(text).quartz()
    except ValueError as error:
        raise GemError("GB609", f"`{text}`: {error}", "Put `*` for one of the two.") from None


def _task(
    bundle: Bundle, pipeline: BundlePipeline, job: Job, *, folder: str, arguments: list[str]
) -> dict[str, Any]:
    task: dict[str, Any] = {"task_key": pipeline.name}
    if pipeline.description and len(bundle.pipelines) > 1:
        task["description"] = " ".join(pipeline.description.split())
    serverless = job.cluster.serverless
    task.update({"environment_key": "default"} if serverless else {"job_cluster_key": pipeline.name})
    task["python_wheel_task"] = {
        "package_name": bundle.name.replace("_", "-"),
        "entry_point": bundle.package,
        **({"parameters": arguments} if arguments else {}),
    }
    if not serverless:
        task["libraries"] = [
            *({"whl": path} for path in _wheels(bundle, job, folder)),
            *({"pypi": {"package": requirement}} for requirement in requirements(bundle, job)),
            *({"maven": {"coordinates": coordinate}} for coordinate in own_jars(bundle)),
        ]
    if not job.continuous:
        task["max_retries"] = job.restarts.max
        if job.restarts.max:
            task["min_retry_interval_millis"] = seconds(job.restarts.wait) * 1000
            task["retry_on_timeout"] = False
    return task


def _new_cluster(pipeline: BundlePipeline, job: Job) -> dict[str, Any]:
    cluster = job.cluster
    settings = spark_settings(pipeline)
    tags = dict(job.tags or {})
    content: dict[str, Any] = {"spark_version": cluster.spark_version or ""}
    named = {
        "node_type_id": cluster.node_type,
        "driver_node_type_id": cluster.driver_node_type,
        "instance_pool_id": cluster.pool,
        "policy_id": cluster.policy,
    }
    content.update({key: value for key, value in named.items() if value is not None})
    if isinstance(cluster.workers, int):
        content["num_workers"] = cluster.workers
    else:
        content["autoscale"] = {"min_workers": cluster.workers.min, "max_workers": cluster.workers.max}
    if cluster.workers == 0:
        settings.update({"spark.databricks.cluster.profile": "singleNode", "spark.master": "local[*]"})
        tags["ResourceClass"] = "SingleNode"
    content["data_security_mode"] = "SINGLE_USER"
    if settings:
        content["spark_conf"] = settings
    if tags:
        content["custom_tags"] = tags
    return content


def _holder(principal: Principal) -> dict[str, str]:
    named = {
        "user_name": principal.user,
        "group_name": principal.group,
        "service_principal_name": principal.service_principal,
    }
    return {key: value for key, value in named.items() if value is not None}


def _notifications(job: Job) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if job.notifications is not None:
        events: dict[str, Recipients | None] = {
            "on_start": job.notifications.on_start,
            "on_success": job.notifications.on_success,
            "on_failure": job.notifications.on_failure,
        }
        email = {event: list(who.email) for event, who in events.items() if who is not None and who.email}
        webhook = {
            event: [{"id": name} for name in who.webhook]
            for event, who in events.items()
            if who is not None and who.webhook
        }
        if email:
            content["email_notifications"] = email
        if webhook:
            content["webhook_notifications"] = webhook
    if job.timetable is not None:
        content["notification_settings"] = {"no_alert_for_skipped_runs": True}
    return content
