"""Bundles as the build hands them to the job definitions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundler.bundle.model import (
    Bundle,
    BundleParameter,
    BundlePipeline,
    BundleTarget,
    LockedDistribution,
    LockedJar,
    Runtime,
)
from gem_bundler.job.section import Job

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle import Finding

DIGEST = "sha256:" + "0123456789abcdef" * 4
EVERYTHING: dict[str, Any] = {
    "name": "Clicks",
    "schedule": {"cron": "30 6 * * MON-FRI", "timezone": "Europe/Zurich"},
    "root": "/Volumes/main/streams/clicks",
    "parameters": {"topic": "clicks", "brokers": ["b1:9092", "b2:9092"]},
    "cluster": {
        "workers": {"min": 2, "max": 8},
        "driver": {"cores": 2, "memory": "4g"},
        "executor": {"cores": 4, "memory": "8g"},
        "node_type": "i3.xlarge",
        "driver_node_type": "i3.large",
        "spark_version": "19.x-scala2.13",
        "policy": "0123",
        "master": "yarn",
        "deploy_mode": "cluster",
        "image": f"registry.example.com/clicks@{DIGEST}",
        "image_pull_secret": "registry",
        "namespace": "streams",
        "service_account": "clicks",
        "secret": "clicks-secrets",
    },
    "retries": {"max": 3, "wait": "2 minutes"},
    "timeout": "2 hours",
    "stop_timeout": "10 minutes",
    "tags": {"team": "web", "cost-centre": 12},
    "run_as": {"service_principal": "6e5a"},
    "permissions": [{"group": "data", "level": "run"}, {"user": "ann@example.com", "level": "owner"}],
    "notifications": {
        "on_start": {"email": ["log@example.com"]},
        "on_success": {"webhook": ["w-1"]},
        "on_failure": {"email": ["ann@example.com", "bob@example.com"], "webhook": ["w-1", "w-2"]},
    },
}
ON_DATABRICKS: dict[str, Any] = {
    "root": "/Volumes/main/streams",
    "cluster": {"node_type": "i3.xlarge", "spark_version": "19.x-scala2.13"},
}
SERVERLESS: dict[str, Any] = {"root": "/Volumes/main/streams", "cluster": {"serverless": True}}
ON_KUBERNETES: dict[str, Any] = {
    "root": "s3a://streams/clicks",
    "cluster": {"image": f"registry.example.com/clicks@{DIGEST}"},
}
AVAILABLE_NOW = (BundleTarget("table", "delta", "available_now"),)


def merged(base: dict[str, Any], **differences: Any) -> dict[str, Any]:
    """A job with differences; those of its cluster are merged."""
    cluster = {**base.get("cluster", {}), **differences.pop("cluster", {})}
    return {**base, **differences, "cluster": cluster}


def jar(coordinate: str) -> LockedJar:
    _, artifact, version = coordinate.split(":")
    return LockedJar(coordinate, f"{artifact}-{version}.jar", "ab" * 32, 10)


DELTA = jar("io.delta:delta-spark_4.2_2.13:4.4.0")
KAFKA = jar("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0")
KAFKA_CLIENTS = jar("org.apache.kafka:kafka-clients:3.9.2")
ACME = jar("com.acme:acme-spark:1.2.0")


def distribution(
    name: str, *requires: str, tag: str = "py3-none-any", version: str = "1.0"
) -> LockedDistribution:
    """A locked distribution."""
    file = f"{name.replace('-', '_')}-{version}-{tag}.whl"
    return LockedDistribution(name, version, file, "cd" * 32, requires)


# By name, as a lock has them; the gem needs the runtime, which needs two others.
DISTRIBUTIONS = (
    distribution("acme-gems", "gem-bundle", version="1.2.0"),
    distribution("delta-spark", "pyspark"),
    distribution("gem-bundle", "pluggy", "pydantic", version="0.1.0"),
    distribution("pluggy"),
    distribution("pydantic", "pydantic-core"),
    distribution("pydantic-core", tag="cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64"),
)


def pipeline(**differences: Any) -> BundlePipeline:
    own = BundlePipeline(
        name="clicks_per_minute",
        file="clicks.yaml",
        description="Clicks per page and minute.",
        targets=(BundleTarget("table", "delta"),),
    )
    return replace(own, **differences)


PARAMETERS = (
    BundleParameter("topic", "string", required=True, description="Where the clicks are."),
    BundleParameter("brokers", "list", default=["localhost:9092"]),
)


def bundle(job: dict[str, Any] | None = None, **differences: Any) -> Bundle:
    own = Bundle(
        name="clicks_per_minute",
        version="1.4.0+g0123456789ab",
        description="Clicks per page and minute.",
        pipelines=(pipeline(),),
        runtime=Runtime("3.11", "4.2.0", "2.13", 17, "manylinux2014_x86_64", "0.1.0"),
        gems=(),
        wheel="clicks_per_minute-1.4.0+g0123456789ab-py3-none-any.whl",
        archive="clicks_per_minute-1.4.0+g0123456789ab.zip",
        package="clicks_per_minute_bundle",
        entry_point="clicks-per-minute",
        requires=("gem-bundle==0.1.0", "acme-gems==1.2.0", "pyspark==4.2.0", "delta-spark==4.4.0"),
        distributions=DISTRIBUTIONS,
        deps="deps.tar.gz",
        jars=(DELTA, KAFKA, KAFKA_CLIENTS),
        job=None if job is None else Job.model_validate(job),
    )
    return replace(own, **differences)


def full_bundle(**differences: Any) -> Bundle:
    """A bundle whose job says everything that can be said."""
    own = pipeline(
        parameters=PARAMETERS,
        secrets=("kafka/password",),
        spark=(("spark.sql.shuffle.partitions", "8"), ("spark.app.owner", "${owner}")),
        targets=AVAILABLE_NOW,
    )
    return bundle(EVERYTHING, **{"pipelines": (own,), "jars": (DELTA, KAFKA, ACME), **differences})


def codes(findings: Iterable[Finding]) -> list[str]:
    return sorted({finding.code for finding in findings})


def only(findings: Iterable[Finding], code: str) -> Finding:
    found = [finding for finding in findings if finding.code == code]
    assert len(found) == 1, found
    return found[0]
