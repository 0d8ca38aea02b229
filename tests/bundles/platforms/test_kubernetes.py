"""A bundle's job on Kubernetes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pydantic import ValidationError

from gem_bundle import GemError
from gem_bundle.pipeline.secrets import SecretStore
from gem_bundler.platforms.common import secret_variable
from gem_bundler.platforms.kubernetes import definition as kubernetes
from gem_bundler.platforms.kubernetes.shapes import ApacheApplication, KubeflowApplication
from tests.bundles.bundles_for_jobs import (
    ACME,
    AVAILABLE_NOW,
    DIGEST,
    ON_KUBERNETES,
    PARAMETERS,
    bundle,
    codes,
    full_bundle,
    merged,
    only,
    pipeline,
)
from tests.schemas import validator

if TYPE_CHECKING:
    from gem_bundler.bundle.model import Bundle

OPERATORS = Path(__file__).parent / "operators"
KUBEFLOW, APACHE, DOCKERFILE = (
    f"kubernetes/{name}" for name in ("kubeflow.yaml", "apache.yaml", "Dockerfile")
)


def manifests(built: Bundle, name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(kubernetes.files(built)[name]))


def kubeflow(built: Bundle) -> dict[str, Any]:
    return manifests(built, KUBEFLOW)[0]


def apache(built: Bundle) -> dict[str, Any]:
    return manifests(built, APACHE)[0]


def dockerfile(built: Bundle) -> str:
    return kubernetes.files(built)[DOCKERFILE].decode()


JOBS = {
    "nothing said": bundle(),
    "image only": bundle(ON_KUBERNETES),
    "everything said": full_bundle(),
    "keep alive": bundle(merged(ON_KUBERNETES, keep_alive="every 10 minutes")),
    "continuous": bundle(merged(ON_KUBERNETES, continuous=True)),
    "schedule": bundle(merged(ON_KUBERNETES, schedule="@daily", retries=2)),
    "two pipelines": bundle(ON_KUBERNETES, pipelines=(pipeline(), pipeline(name="late_clicks"))),
    "no jars": bundle(ON_KUBERNETES, jars=()),
    "server": bundle(merged(ON_KUBERNETES, serve="8080", cluster={"secret": "clicks"})),
}


@pytest.mark.parametrize("built", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize(("name", "operator"), [(KUBEFLOW, "kubeflow"), (APACHE, "apache")])
def test_the_operators_take_every_field(built: Bundle, name: str, operator: str) -> None:
    schema = json.loads((OPERATORS / f"{operator}.json").read_text(encoding="utf-8"))
    taken = validator(schema)

    documents = manifests(built, name)

    assert len(documents) == len(built.pipelines)
    for document in documents:
        assert [e.message for e in taken.iter_errors(document)] == []


@pytest.mark.parametrize(("name", "operator"), [(KUBEFLOW, "kubeflow"), (APACHE, "apache")])
def test_the_schemas_are_closed(name: str, operator: str) -> None:
    schema = json.loads((OPERATORS / f"{operator}.json").read_text(encoding="utf-8"))
    document = manifests(bundle(ON_KUBERNETES), name)[0]
    document["spec"]["restartPolicies"] = {}

    assert not validator(schema).is_valid(document)


def test_kubeflow_gets_everything() -> None:
    document = kubeflow(full_bundle())
    spec = document["spec"]["template"]

    assert document["kind"] == "ScheduledSparkApplication"
    assert document["metadata"]["namespace"] == "streams"
    assert document["metadata"]["labels"]["app.kubernetes.io/version"] == "1.4.0-g0123456789ab"
    assert document["metadata"]["labels"]["team"] == "web"
    assert {k: v for k, v in document["spec"].items() if k != "template"} == {
        "schedule": "30 6 * * MON-FRI",
        "timeZone": "Europe/Zurich",
        "concurrencyPolicy": "Forbid",
        "successfulRunHistoryLimit": 1,
        "failedRunHistoryLimit": 3,
    }
    assert spec["image"] == f"registry.example.com/clicks@{DIGEST}"
    assert spec["imagePullSecrets"] == ["registry"]
    assert spec["mainApplicationFile"] == "local:///opt/bundle/main.py"
    assert spec["arguments"][:2] == ["-p", "topic=clicks"]
    assert spec["sparkConf"] == {"spark.sql.shuffle.partitions": "8"}
    assert spec["restartPolicy"] == {
        "type": "OnFailure",
        "onFailureRetries": 3,
        "onFailureRetryInterval": 120,
        "onSubmissionFailureRetries": 3,
        "onSubmissionFailureRetryInterval": 120,
    }
    assert spec["dynamicAllocation"]["maxExecutors"] == 8
    assert (spec["driver"]["cores"], spec["driver"]["memory"]) == (2, "4g")
    assert (spec["executor"]["cores"], spec["executor"]["memory"]) == (4, "8g")
    assert spec["driver"]["serviceAccount"] == "clicks"
    assert spec["driver"]["env"] == [
        {
            "name": "GEM_BUNDLE_SECRET_KAFKA_PASSWORD",
            "valueFrom": {
                "secretKeyRef": {"name": "clicks-secrets", "key": "GEM_BUNDLE_SECRET_KAFKA_PASSWORD"}
            },
        }
    ]


def test_apache_gets_everything() -> None:
    spec = apache(full_bundle())["spec"]
    settings = spec["sparkConf"]

    assert spec["pyFiles"] == "local:///opt/bundle/main.py"
    assert spec["runtimeVersions"] == {"sparkVersion": "4.2.0", "scalaVersion": "2.13"}
    assert settings["spark.kubernetes.container.image"] == f"registry.example.com/clicks@{DIGEST}"
    assert settings["spark.kubernetes.authenticate.driver.serviceAccountName"] == "clicks"
    assert settings["spark.kubernetes.driver.secretKeyRef.GEM_BUNDLE_SECRET_KAFKA_PASSWORD"] == (
        "clicks-secrets:GEM_BUNDLE_SECRET_KAFKA_PASSWORD"
    )
    assert settings["spark.executor.memory"] == "8g"
    assert settings["spark.dynamicAllocation.minExecutors"] == "2"
    assert "local:///opt/bundle/jars/acme-spark-1.2.0.jar" in settings["spark.jars"].split(",")
    assert spec["applicationTolerations"]["restartConfig"] == {
        "restartPolicy": "OnFailure",
        "maxRestartAttempts": 3,
        "restartBackoffMillis": 120_000,
    }


def test_a_stream_has_time_to_end() -> None:
    built = bundle(merged(ON_KUBERNETES, stop_timeout="10 minutes"))

    assert kubeflow(built)["spec"]["driver"]["terminationGracePeriodSeconds"] == 630
    spec = apache(built)["spec"]
    assert spec["driverSpec"]["podTemplateSpec"]["spec"] == {"terminationGracePeriodSeconds": 630}
    timeouts = spec["applicationTolerations"]["applicationTimeoutConfig"]
    assert timeouts == {"forceTerminationGracePeriodMillis": 630_000}


def test_a_continuous_job_is_always_restarted() -> None:
    built = JOBS["continuous"]

    assert kubeflow(built)["kind"] == "SparkApplication"
    assert kubeflow(built)["spec"]["restartPolicy"]["type"] == "Always"
    assert apache(built)["spec"]["applicationTolerations"]["restartConfig"]["restartPolicy"] == "Always"


def test_a_job_with_a_server_has_probes() -> None:
    built = JOBS["server"]
    for spec, pod, arguments in (
        (kubeflow(built)["spec"], kubeflow(built)["spec"]["driver"]["template"]["spec"], "arguments"),
        (apache(built)["spec"], apache(built)["spec"]["driverSpec"]["podTemplateSpec"]["spec"], "driverArgs"),
    ):
        assert spec[arguments][-2:] == ["--serve", "0.0.0.0:8080"]
        (container,) = pod["containers"]
        alive = container["livenessProbe"]
        assert alive["periodSeconds"] * alive["failureThreshold"] == 60, "as the docs say"
        asked = {name: container[name]["httpGet"] for name in container if name.endswith("Probe")}
        assert asked == {
            "startupProbe": {"path": "/health", "port": 8080},
            "livenessProbe": {"path": "/health", "port": 8080},
            "readinessProbe": {"path": "/ready", "port": 8080},
        }
    token = {"name": "GEM_BUNDLE_SERVE_TOKEN", "key": "GEM_BUNDLE_SERVE_TOKEN"}
    (variable,) = kubeflow(built)["spec"]["driver"]["env"]
    assert variable["name"] == token["name"]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": "clicks", "key": token["key"]}
    settings = apache(built)["spec"]["sparkConf"]
    assert settings[f"spark.kubernetes.driver.secretKeyRef.{token['name']}"] == f"clicks:{token['key']}"
    assert "--from-literal=GEM_BUNDLE_SERVE_TOKEN=…" in kubernetes.files(built)[KUBEFLOW].decode()
    assert codes(kubernetes.check(built)) == []
    assert "template" not in kubeflow(JOBS["image only"])["spec"]["driver"]


def test_keep_alive_starts_what_does_not_run() -> None:
    built = JOBS["keep alive"]
    document = kubeflow(built)
    restarts = apache(built)["spec"]["applicationTolerations"]["restartConfig"]

    assert (document["spec"]["schedule"], document["spec"]["concurrencyPolicy"]) == ("*/10 * * * *", "Forbid")
    assert document["spec"]["template"]["arguments"][-1] == "--keep-alive"
    assert (restarts["restartPolicy"], restarts["restartBackoffMillis"]) == ("Always", 600_000)


def test_each_pipeline_is_an_application() -> None:
    documents = manifests(JOBS["two pipelines"], KUBEFLOW)

    assert [d["metadata"]["name"] for d in documents] == [
        "clicks-per-minute",
        "clicks-per-minute-late-clicks",
    ]
    assert documents[1]["spec"]["arguments"][:2] == ["--pipeline", "late_clicks"]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (f"registry.example.com:5000/clicks@{DIGEST}", f"registry.example.com:5000/clicks@{DIGEST}"),
        ("registry.example.com:5000/clicks:7", "registry.example.com:5000/clicks:7"),
        ("registry.example.com:5000/clicks", "registry.example.com:5000/clicks:1.4.0-g0123456789ab"),
    ],
)
def test_an_image_has_a_version(image: str, expected: str) -> None:
    built = bundle(merged(ON_KUBERNETES, cluster={"image": image}))

    assert kubeflow(built)["spec"]["image"] == expected


# The image


def test_the_image_has_the_bundle_in_it() -> None:
    text = dockerfile(bundle(ON_KUBERNETES))

    assert "-t registry.example.com/clicks:1.4.0-g0123456789ab ." in text
    assert "ARG SPARK_IMAGE=apache/spark:4.2.0-scala2.13-java17-ubuntu" in text
    assert "ARG PYTHON_IMAGE=python:3.11-slim-bookworm" in text
    assert "ADD deps.tar.gz /opt/bundle/deps/" in text
    assert "COPY main.py clicks_per_minute-1.4.0+g0123456789ab.zip /opt/bundle/" in text
    assert text.endswith("USER 185\n")


def test_jars_are_compared_with_the_lock_or_copied() -> None:
    fetched = dockerfile(bundle(ON_KUBERNETES, jars=(ACME,)))
    copied = dockerfile(bundle(ON_KUBERNETES, jars=(ACME,), vendored=True))

    assert f"--checksum=sha256:{ACME.sha256}" in fetched
    assert "/com/acme/acme-spark/1.2.0/acme-spark-1.2.0.jar /opt/bundle/jars/acme-spark-1.2.0.jar" in fetched
    assert "COPY jars/ /opt/bundle/jars/" in copied
    assert "--checksum" not in copied


def test_a_thin_bundle_installs_what_it_needs() -> None:
    text = dockerfile(bundle(ON_KUBERNETES, deps=None))

    assert "pip install --no-cache-dir --target /opt/bundle/deps" in text
    assert "'acme-gems==1.2.0'" in text
    assert "pyspark" not in text.replace("PYSPARK", "")


def test_the_image_can_be_made_from_ones_own() -> None:
    own = f"registry.example.com/spark@{DIGEST}"
    text = dockerfile(bundle(merged(ON_KUBERNETES, cluster={"base_image": own})))

    assert f"FROM {own}\n" in text
    assert text.count("FROM ") == 1


def test_the_files_are_the_same_every_time() -> None:
    assert kubernetes.files(full_bundle()) == kubernetes.files(full_bundle())


# What Kubernetes can't do


def test_what_is_fine_is_not_complained_of() -> None:
    assert codes(kubernetes.check(bundle(ON_KUBERNETES))) == []
    assert codes(kubernetes.check(full_bundle())) == ["GB610"]


@pytest.mark.parametrize(
    ("job", "differences", "code", "severity"),
    [
        ({"cluster": ON_KUBERNETES["cluster"]}, {}, "GB606", "error"),
        (ON_KUBERNETES, {"pipelines": (pipeline(parameters=PARAMETERS),)}, "GB608", "error"),
        (merged(ON_KUBERNETES, timeout="1 hour"), {}, "GB610", "note"),
        (merged(ON_KUBERNETES, cluster={"workers": 0}), {}, "GB612", "error"),
        ({"root": "s3a://a"}, {}, "GB613", "error"),
        (ON_KUBERNETES, {"pipelines": (pipeline(secrets=("kafka/password",)),)}, "GB614", "error"),
        (merged(ON_KUBERNETES, name="n" * 57), {}, "GB615", "error"),
        (merged(ON_KUBERNETES, name="n" * 37, keep_alive="every hour"), {}, "GB615", "error"),
        (merged(ON_KUBERNETES, name="点击"), {}, "GB615", "error"),
        (
            merged(ON_KUBERNETES, continuous=True),
            {"pipelines": (pipeline(targets=AVAILABLE_NOW),)},
            "GB616",
            "warning",
        ),
        (merged(ON_KUBERNETES, cluster={"image": "registry.example.com/clicks:7"}), {}, "GB619", "warning"),
        (merged(ON_KUBERNETES, serve="8080"), {}, "GB638", "error"),
        (merged(ON_KUBERNETES, serve="0", cluster={"secret": "s"}), {}, "GB638", "error"),
        (merged(ON_KUBERNETES, serve="localhost:8080", cluster={"secret": "s"}), {}, "GB638", "error"),
    ],
)
def test_what_kubernetes_cannot_do_is_said(
    job: dict[str, Any], differences: dict[str, Any], code: str, severity: str
) -> None:
    finding = only(kubernetes.check(bundle(job, **differences)), code)

    assert finding.severity == severity
    assert finding.hint


def test_apaches_operator_has_no_schedules() -> None:
    finding = only(kubernetes.check(JOBS["schedule"]), "GB610")

    assert "Apache's operator" in finding.message


def test_the_hint_names_the_secrets_keys() -> None:
    own = pipeline(secrets=("kafka/password", "s3/key-id"))
    finding = only(kubernetes.check(bundle(ON_KUBERNETES, pipelines=(own,))), "GB614")

    assert "--from-literal=GEM_BUNDLE_SECRET_KAFKA_PASSWORD=" in finding.hint
    assert "--from-literal=GEM_BUNDLE_SECRET_S3_KEY_ID=" in finding.hint


@pytest.mark.parametrize("secret", ["kafka/password", "s3/key-id", "a.b/c d"])
def test_secrets_are_looked_for_where_the_job_puts_them(secret: str) -> None:
    scope, _, key = secret.partition("/")

    assert SecretStore({secret_variable(secret): "value"}).find(scope, key)[0] == "value"


@pytest.mark.parametrize("tags", [{"team": "web & apps"}, {"team!": "web"}, {"team": "x" * 64}])
def test_a_tag_that_is_no_label_is_an_error_of_the_build(tags: dict[str, str]) -> None:
    with pytest.raises(GemError) as caught:
        kubernetes.files(bundle(merged(ON_KUBERNETES, tags=tags)))

    assert caught.value.code == "GB618"
    assert "metadata.labels" in caught.value.message


# The models are closed


def test_no_unknown_field_and_no_wrong_value_gets_through() -> None:
    flow, own = kubeflow(bundle(ON_KUBERNETES)), apache(bundle(ON_KUBERNETES))
    KubeflowApplication.model_validate(flow)
    ApacheApplication.model_validate(own)

    with pytest.raises(ValidationError, match="restartPolcy"):
        KubeflowApplication.model_validate({**flow, "spec": {**flow["spec"], "restartPolcy": {}}})
    with pytest.raises(ValidationError, match="type"):
        KubeflowApplication.model_validate(
            {**flow, "spec": {**flow["spec"], "restartPolicy": {"type": "Sometimes"}}}
        )
    with pytest.raises(ValidationError, match="deploymentMode"):
        ApacheApplication.model_validate({**own, "spec": {**own["spec"], "deploymentMode": "cluster"}})
