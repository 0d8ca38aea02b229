"""What Kubernetes and its operators can't do of a bundle's job, and what would go wrong there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle import Finding
from gem_bundler.platforms.common import (
    check_common,
    check_left_out,
    check_root,
    job_of,
    kubernetes_name,
    secret_variable,
    secrets_of,
    title_of,
)
from gem_bundler.platforms.kubernetes.probes import TOKEN, unreachable
from gem_bundler.platforms.kubernetes.shapes import LONGEST_NAME, LONGEST_SCHEDULED_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundler.bundle.model import Bundle
    from gem_bundler.job.section import Job


def check(bundle: Bundle) -> Iterator[Finding]:
    """What Kubernetes and its operators can't do of a bundle's job, and what would go wrong there.

    A finding's `option` is the way to the key of the `job:` section.
    """
    job = job_of(bundle)
    yield from check_common(bundle, job)
    yield from check_root(bundle, job, "Kubernetes", "s3a://streams/clicks")
    yield from _check_image(job)
    secrets = secrets_of(bundle.pipelines)
    if secrets and job.cluster.secret is None:
        values = " ".join(f"--from-literal={secret_variable(name)}=…" for name in secrets)
        yield Finding(
            "GB614",
            f"the pipeline needs secrets (`{'`, `'.join(secrets)}`), and the job names no Secret with them",
            f"`kubectl create secret generic clicks {values}`, then `job.cluster.secret: clicks`.",
            option=("cluster", "secret"),
        )
    why = unreachable(job)
    if why:
        hint = "Write `serve: 8080`, which listens on all addresses of the pod."
        yield Finding(
            "GB638", f"the probes can't ask the server of `serve: {job.serve}`: {why}", hint, "serve"
        )
    elif job.serve is not None and job.cluster.secret is None:
        yield Finding(
            "GB638",
            f"others reach the server of `serve: {job.serve}`, and the job names no Secret with its token",
            f"`kubectl create secret generic clicks --from-literal={TOKEN}=…`, then "
            "`job.cluster.secret: clicks`.",
            option=("cluster", "secret"),
        )
    for pipeline in bundle.pipelines:
        name = kubernetes_name(title_of(bundle, pipeline, job))
        limit = LONGEST_NAME if job.timetable is None else LONGEST_SCHEDULED_NAME
        if not 0 < len(name) <= limit:
            yield Finding(
                "GB615",
                f"`{title_of(bundle, pipeline, job)}` is `{name}` on Kubernetes, which has {len(name)} "
                f"characters; its pods' names leave room for {limit}",
                "Give the job a shorter `name` of letters, digits and hyphens.",
                option="name",
            )
    if job.cluster.workers == 0:
        yield Finding(
            "GB612",
            "`workers: 0` is a single node, which the Spark operators don't have",
            "Set `workers: 1`, or more.",
            option=("cluster", "workers"),
        )
    left_out = ("run_as", "permissions", "notifications", "timeout")
    yield from check_left_out(
        job, left_out, "Kubernetes", "Access is RBAC's business there, and alerts are the monitoring's."
    )
    if job.schedule is not None:
        yield from check_left_out(
            job,
            ("schedule",),
            "Apache's operator",
            "kubeflow.yaml has it; apache.yaml runs once when applied.",
        )


def _check_image(job: Job) -> Iterator[Finding]:
    image = job.cluster.image
    if image is None:
        yield Finding(
            "GB613",
            "`job.cluster` names no `image`: the operators need to know what the pods run",
            "Write `image: registry.example.com/clicks@${env:IMAGE_DIGEST}`, build the image with the "
            "bundle's kubernetes/Dockerfile, push it, and build again with the digest it got.",
            option=("cluster", "image"),
        )
    elif "@" not in image:
        yield Finding(
            "GB619",
            f"the image `{image}` is not named by its digest: what a tag means can change, and a stream that "
            "restarts would go on with other code",
            "Write `image: …@${env:IMAGE_DIGEST}` with the digest that `docker push` prints.",
            option=("cluster", "image"),
            severity="warning",
        )
