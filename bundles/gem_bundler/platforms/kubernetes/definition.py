"""A bundle's job on Kubernetes: for Kubeflow's Spark operator, for Apache's, and the image for both.

Everything is in the image: the bundle's Python, its dependencies and its jars, so nothing is fetched when
a driver or an executor starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundler.job.section import Retries, seconds
from gem_bundler.platforms.common import (
    job_of,
    kubernetes_name,
    no_wheels,
    nothing_asked,
    secret_variable,
    secrets_of,
    spark_settings,
    start_arguments,
    title_of,
    validated,
    yaml_text,
)
from gem_bundler.platforms.kubernetes.checks import check
from gem_bundler.platforms.kubernetes.image import HOME, dockerfile, image_of, tag_of, version_tag
from gem_bundler.platforms.kubernetes.probes import TOKEN, probed_container, serve_address
from gem_bundler.platforms.kubernetes.shapes import (
    ApacheApplication,
    KubeflowApplication,
    KubeflowSchedule,
)

if TYPE_CHECKING:
    from gem_bundler.bundle.model import Bundle, BundlePipeline
    from gem_bundler.job.section import Job

__all__ = ["asked", "check", "files", "wheels"]

# Everything is in the image.
wheels, asked = no_wheels, nothing_asked

# Kubernetes kills what hasn't ended by then; the driver needs a moment of its own after the last query.
_MOMENT = 30
_RESTART_WAIT = Retries(max=0, wait="10 seconds")
_FOR_EVER = 1_000_000_000


def files(bundle: Bundle) -> dict[str, bytes]:
    """The job definitions by their path within the bundle's folder.

    Raises:
        GemError: GB618 when an operator wouldn't take what the `job:` section says.
    """
    job = job_of(bundle)
    words = {"name": bundle.name, "version": bundle.version, "tag": tag_of(bundle, job)}
    kubeflow = [_kubeflow(bundle, pipeline, job) for pipeline in bundle.pipelines]
    apache = [_apache(bundle, pipeline, job) for pipeline in bundle.pipelines]
    about = _PREPARATION.format(**words) + _about_secrets(bundle, job)
    return {
        "kubernetes/kubeflow.yaml": yaml_text(_KUBEFLOW_HEADER.format(**words) + about, *kubeflow),
        "kubernetes/apache.yaml": yaml_text(_APACHE_HEADER.format(**words) + about, *apache),
        "kubernetes/Dockerfile": dockerfile(bundle, job).encode(),
    }


_KUBEFLOW_HEADER = """
{name} {version} for Kubeflow's Spark operator.
Written by `gem-bundle build`: change the pipeline's `job:` section and build again instead of changing this.

    kubectl apply -f kubernetes/kubeflow.yaml
"""
_APACHE_HEADER = """
{name} {version} for Apache's Spark operator.
Written by `gem-bundle build`: change the pipeline's `job:` section and build again instead of changing this.

    kubectl apply -f kubernetes/apache.yaml
"""
_PREPARATION = """
Before that, from the bundle's folder:

    docker build -f kubernetes/Dockerfile -t {tag} .
    docker push {tag}

The image depends on the pipeline and its dependencies, not on its own digest: with the digest that it got,
build the bundle again.
"""


def _about_secrets(bundle: Bundle, job: Job) -> str:
    names = [secret_variable(name) for name in secrets_of(bundle.pipelines)]
    if job.serve is not None:
        names.append(TOKEN)
    if not names or job.cluster.secret is None:
        return ""
    lines = "".join(f" \\\n        --from-literal={name}=…" for name in names)
    return f"\nThe pipeline's secrets:\n\n    kubectl create secret generic {job.cluster.secret}{lines}\n"


def _metadata(bundle: Bundle, pipeline: BundlePipeline, job: Job) -> dict[str, Any]:
    content: dict[str, Any] = {"name": kubernetes_name(title_of(bundle, pipeline, job))}
    if job.cluster.namespace is not None:
        content["namespace"] = job.cluster.namespace
    content["labels"] = {
        "app.kubernetes.io/name": kubernetes_name(pipeline.name),
        "app.kubernetes.io/version": version_tag(bundle),
        "app.kubernetes.io/managed-by": "gem-bundle",
        **(job.tags or {}),
    }
    about = " ".join((pipeline.description or bundle.description).split())
    if about:
        content["annotations"] = {"gem-bundle/description": about}
    return content


def _jars(bundle: Bundle) -> list[str]:
    return [f"local://{HOME}/jars/{jar.file}" for jar in bundle.jars]


def _grace(job: Job) -> int:
    return seconds(job.stop_timeout) + _MOMENT


def _kubeflow(bundle: Bundle, pipeline: BundlePipeline, job: Job) -> dict[str, Any]:
    head = {"apiVersion": "sparkoperator.k8s.io/v1beta2"}
    metadata = _metadata(bundle, pipeline, job)
    spec = _kubeflow_spec(bundle, pipeline, job)
    timetable = job.timetable
    if timetable is None:
        content = {**head, "kind": "SparkApplication", "metadata": metadata, "spec": spec}
        return validated(KubeflowApplication, content, "Kubeflow's operator")
    content = {
        **head,
        "kind": "ScheduledSparkApplication",
        "metadata": metadata,
        "spec": {
            "schedule": timetable.cron,
            "timeZone": timetable.timezone,
            "concurrencyPolicy": "Forbid",
            "successfulRunHistoryLimit": 1,
            "failedRunHistoryLimit": 3,
            "template": spec,
        },
    }
    return validated(KubeflowSchedule, content, "Kubeflow's operator")


def _kubeflow_spec(bundle: Bundle, pipeline: BundlePipeline, job: Job) -> dict[str, Any]:
    cluster = job.cluster
    labels = _metadata(bundle, pipeline, job)["labels"]
    content: dict[str, Any] = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": bundle.runtime.spark,
        "image": image_of(bundle, job),
        "imagePullPolicy": "IfNotPresent",
    }
    if cluster.image_pull_secret is not None:
        content["imagePullSecrets"] = [cluster.image_pull_secret]
    content["mainApplicationFile"] = f"local://{HOME}/main.py"
    arguments = start_arguments(bundle, pipeline, job, root=job.root, serve=serve_address(job))
    if arguments:
        content["arguments"] = arguments
    if bundle.jars:
        content["deps"] = {"jars": _jars(bundle)}
    settings = spark_settings(pipeline)
    if settings:
        content["sparkConf"] = settings
    content["restartPolicy"] = _kubeflow_restarts(job)
    executor: dict[str, Any] = {}
    if isinstance(cluster.workers, int):
        executor["instances"] = max(1, cluster.workers)
    else:
        content["dynamicAllocation"] = {
            "enabled": True,
            "initialExecutors": cluster.workers.min,
            "minExecutors": cluster.workers.min,
            "maxExecutors": cluster.workers.max,
            "shuffleTrackingEnabled": True,
        }
    driver = {
        **_machine(job.cluster.driver.cores, job.cluster.driver.memory),
        "serviceAccount": cluster.service_account,
    }
    driver["labels"] = labels
    environment = _secret_variables(bundle, job)
    if environment:
        driver["env"] = [
            {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
            for name, (secret, key) in environment.items()
        ]
    driver["terminationGracePeriodSeconds"] = _grace(job)
    probed = probed_container(job)
    if probed is not None:
        driver["template"] = {"spec": {"containers": [probed]}}
    content["driver"] = driver
    content["executor"] = {
        **executor,
        **_machine(cluster.executor.cores, cluster.executor.memory),
        "labels": labels,
    }
    return content


def _machine(cores: int | None, memory: str | None) -> dict[str, Any]:
    named = {"cores": cores, "memory": memory}
    return {key: value for key, value in named.items() if value is not None}


def _secret_variables(bundle: Bundle, job: Job) -> dict[str, tuple[str, str]]:
    """The driver's variables for secrets: each is a key of the same name in the job's Secret."""
    secret = job.cluster.secret
    if secret is None:
        return {}
    names = [secret_variable(name) for name in secrets_of(bundle.pipelines)]
    if job.serve is not None:
        names.append(TOKEN)
    return {name: (secret, name) for name in names}


def _kubeflow_restarts(job: Job) -> dict[str, Any]:
    if job.continuous:
        wait = seconds((job.restarts if job.restarts.max else _RESTART_WAIT).wait)
        return {"type": "Always", "onFailureRetryInterval": wait, "onSubmissionFailureRetryInterval": wait}
    if not job.restarts.max:
        return {"type": "Never"}
    wait = seconds(job.restarts.wait)
    return {
        "type": "OnFailure",
        "onFailureRetries": job.restarts.max,
        "onFailureRetryInterval": wait,
        "onSubmissionFailureRetries": job.restarts.max,
        "onSubmissionFailureRetryInterval": wait,
    }


def _apache(bundle: Bundle, pipeline: BundlePipeline, job: Job) -> dict[str, Any]:
    metadata = _metadata(bundle, pipeline, job)
    labels = {"labels": metadata["labels"]}
    spec: dict[str, Any] = {
        "runtimeVersions": {"sparkVersion": bundle.runtime.spark, "scalaVersion": bundle.runtime.scala},
        "deploymentMode": "ClusterMode",
        "pyFiles": f"local://{HOME}/main.py",
    }
    arguments = start_arguments(bundle, pipeline, job, root=job.root, serve=serve_address(job))
    if arguments:
        spec["driverArgs"] = arguments
    spec["sparkConf"] = _apache_settings(bundle, pipeline, job)
    spec["applicationTolerations"] = {
        "restartConfig": _apache_restarts(job),
        "applicationTimeoutConfig": {"forceTerminationGracePeriodMillis": _grace(job) * 1000},
        "resourceRetainPolicy": "OnFailure",
    }
    pod: dict[str, Any] = {"terminationGracePeriodSeconds": _grace(job)}
    probed = probed_container(job)
    if probed is not None:
        pod["containers"] = [probed]
    spec["driverSpec"] = {"podTemplateSpec": {"metadata": labels, "spec": pod}}
    spec["executorSpec"] = {"podTemplateSpec": {"metadata": labels}}
    content = {
        "apiVersion": "spark.apache.org/v1",
        "kind": "SparkApplication",
        "metadata": metadata,
        "spec": spec,
    }
    return validated(ApacheApplication, content, "Apache's operator")


def _apache_settings(bundle: Bundle, pipeline: BundlePipeline, job: Job) -> dict[str, str]:
    cluster = job.cluster
    settings = spark_settings(pipeline)
    settings["spark.kubernetes.container.image"] = image_of(bundle, job)
    settings["spark.kubernetes.container.image.pullPolicy"] = "IfNotPresent"
    settings["spark.kubernetes.authenticate.driver.serviceAccountName"] = cluster.service_account
    if isinstance(cluster.workers, int):
        settings["spark.executor.instances"] = str(max(1, cluster.workers))
    else:
        settings["spark.dynamicAllocation.enabled"] = "true"
        settings["spark.dynamicAllocation.shuffleTracking.enabled"] = "true"
        settings["spark.dynamicAllocation.minExecutors"] = str(cluster.workers.min)
        settings["spark.dynamicAllocation.maxExecutors"] = str(cluster.workers.max)
    named = {
        "spark.driver.cores": cluster.driver.cores,
        "spark.driver.memory": cluster.driver.memory,
        "spark.executor.cores": cluster.executor.cores,
        "spark.executor.memory": cluster.executor.memory,
        "spark.kubernetes.container.image.pullSecrets": cluster.image_pull_secret,
    }
    settings.update({key: str(value) for key, value in named.items() if value is not None})
    for name, (secret, key) in _secret_variables(bundle, job).items():
        settings[f"spark.kubernetes.driver.secretKeyRef.{name}"] = f"{secret}:{key}"
    if bundle.jars:
        settings["spark.jars"] = ",".join(_jars(bundle))
    return settings


def _apache_restarts(job: Job) -> dict[str, Any]:
    if job.continuous or job.keep_alive is not None:
        wait = seconds(job.keep_alive or (job.restarts if job.restarts.max else _RESTART_WAIT).wait)
        return {
            "restartPolicy": "Always",
            "maxRestartAttempts": _FOR_EVER,
            "restartBackoffMillis": wait * 1000,
        }
    if not job.restarts.max:
        return {"restartPolicy": "Never"}
    return {
        "restartPolicy": "OnFailure",
        "maxRestartAttempts": job.restarts.max,
        "restartBackoffMillis": seconds(job.restarts.wait) * 1000,
    }
