"""A bundle's job on Databricks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from gem_bundle import GemError
from gem_bundler.bundle.model import Bundle, BundleTarget, Runtime
from gem_bundler.platforms.databricks import definition as databricks
from gem_bundler.platforms.databricks.shapes import BundleFile, BundleJob, CreateJob
from tests.bundles.bundles_for_jobs import (
    ACME,
    AVAILABLE_NOW,
    DELTA,
    DISTRIBUTIONS,
    ON_DATABRICKS,
    PARAMETERS,
    SERVERLESS,
    bundle,
    codes,
    distribution,
    full_bundle,
    jar,
    merged,
    only,
    pipeline,
)

RESOURCE = "databricks/resources/clicks_per_minute.job.yml"


def read(built: Bundle) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The bundle's file, the resource's and the request."""
    files = databricks.files(built)
    assert list(files) == ["databricks/databricks.yml", RESOURCE, "databricks/job.json"]
    return (
        yaml.safe_load(files["databricks/databricks.yml"]),
        yaml.safe_load(files[RESOURCE]),
        json.loads(files["databricks/job.json"]),
    )


def job_in(built: Bundle) -> dict[str, Any]:
    job = read(built)[1]["resources"]["jobs"]["clicks_per_minute"]
    assert isinstance(job, dict)
    return job


JOBS = {
    "nothing said": bundle(ON_DATABRICKS),
    "everything said": full_bundle(),
    "keep alive": bundle(merged(ON_DATABRICKS, keep_alive="every 10 minutes")),
    "continuous": bundle(merged(ON_DATABRICKS, continuous=True, retries=3)),
    "single node": bundle(merged(ON_DATABRICKS, cluster={"workers": 0})),
    "pool and policy": bundle(
        merged({}, cluster={"pool": "p", "policy": "q", "spark_version": "19.x-scala2.13"}, root="/Volumes/a")
    ),
    "serverless": bundle(
        merged(SERVERLESS, schedule="@hourly"), pipelines=(pipeline(targets=AVAILABLE_NOW),)
    ),
    "from an index": bundle(merged(ON_DATABRICKS, libraries="index")),
    "thin": bundle(ON_DATABRICKS, deps=None, distributions=()),
    "for serverless": bundle(
        merged(SERVERLESS, schedule="@hourly"),
        pipelines=(pipeline(targets=AVAILABLE_NOW),),
        runtime=Runtime("3.12", "4.2.0", "2.13", 17, "manylinux2014_x86_64", "0.1.0"),
    ),
    "two pipelines": bundle(ON_DATABRICKS, pipelines=(pipeline(), pipeline(name="late_clicks"))),
    "without a root": bundle({"cluster": ON_DATABRICKS["cluster"]}, pipelines=(pipeline(mode="batch"),)),
}


@pytest.mark.parametrize("built", JOBS.values(), ids=JOBS)
@pytest.mark.servers
def test_the_sdk_loses_no_field(built: Bundle) -> None:
    # Here, because it takes a second that no collection of other tests should wait for.
    from databricks.sdk.service import jobs

    bundle_file, resource, request = read(built)
    permissions = resource["resources"]["jobs"]["clicks_per_minute"].pop("permissions", [])
    control = request.pop("access_control_list", [])

    for job in (resource["resources"]["jobs"]["clicks_per_minute"], request):
        assert jobs.JobSettings.from_dict(job).as_dict() == job
    for permission in permissions:
        entry = {key.replace("level", "permission_level"): value for key, value in permission.items()}
        assert jobs.JobAccessControlRequest.from_dict(entry).as_dict() == entry
    for entry in control:
        assert jobs.JobAccessControlRequest.from_dict(entry).as_dict() == entry
    assert bundle_file["bundle"] == {"name": "clicks_per_minute"}


@pytest.mark.parametrize("built", JOBS.values(), ids=JOBS)
def test_streams_stay_whole(built: Bundle) -> None:
    bundle_file, resource, request = read(built)
    job = resource["resources"]["jobs"]["clicks_per_minute"]

    for definition in (job, request):
        assert definition["max_concurrent_runs"] == 1
        assert definition["queue"] == {"enabled": False}
        assert "pause_status" not in json.dumps(definition)
    for target, status in {"dev": "PAUSED", "prod": "UNPAUSED"}.items():
        assert bundle_file["targets"][target]["presets"] == {
            "trigger_pause_status": status,
            "jobs_max_concurrent_runs": 1,
            "artifacts_dynamic_version": False,
        }
    assert bundle_file["artifacts"] == {
        "clicks_per_minute": {
            "type": "whl",
            "files": [{"source": "../clicks_per_minute-1.4.0+g0123456789ab-py3-none-any.whl"}],
        }
    }


def test_the_job_says_everything() -> None:
    bundle_file, resource, request = read(full_bundle())
    job = resource["resources"]["jobs"]["clicks_per_minute"]
    assert job["schedule"] == {
        "quartz_cron_expression": "0 30 6 ? * MON-FRI",
        "timezone_id": "Europe/Zurich",
    }
    assert job["timeout_seconds"] == 7200
    assert job["email_notifications"] == {
        "on_start": ["log@example.com"],
        "on_failure": ["ann@example.com", "bob@example.com"],
    }
    assert job["webhook_notifications"]["on_failure"] == [{"id": "w-1"}, {"id": "w-2"}]
    assert job["notification_settings"] == {"no_alert_for_skipped_runs": True}
    assert job["run_as"] == {"service_principal_name": "6e5a"}
    assert job["permissions"] == [
        {"group_name": "data", "level": "CAN_MANAGE_RUN"},
        {"user_name": "ann@example.com", "level": "IS_OWNER"},
    ]
    assert request["access_control_list"][1] == {
        "user_name": "ann@example.com",
        "permission_level": "IS_OWNER",
    }
    assert job["job_clusters"][0]["new_cluster"] == {
        "spark_version": "19.x-scala2.13",
        "node_type_id": "i3.xlarge",
        "driver_node_type_id": "i3.large",
        "policy_id": "0123",
        "autoscale": {"min_workers": 2, "max_workers": 8},
        "data_security_mode": "SINGLE_USER",
        "spark_conf": {"spark.sql.shuffle.partitions": "8"},
        "custom_tags": {"team": "web", "cost-centre": "12"},
    }
    task = job["tasks"][0]
    assert task["python_wheel_task"] == {
        "package_name": "clicks-per-minute",
        "entry_point": "clicks_per_minute_bundle",
        "parameters": [
            *("-p", "topic=clicks", "-p", 'brokers=["b1:9092", "b2:9092"]'),
            *("--root", "${var.root}"),
        ],
    }
    assert (task["max_retries"], task["min_retry_interval_millis"]) == (3, 120_000)
    assert bundle_file["variables"]["root"]["description"]


def test_the_run_of_a_job_with_a_server_answers() -> None:
    (task,) = job_in(bundle(merged(ON_DATABRICKS, serve="8080")))["tasks"]
    assert task["python_wheel_task"]["parameters"][-2:] == ["--serve", "8080"]


def test_dev_and_prod_have_checkpoints_of_their_own() -> None:
    bundle_file, _, request = read(bundle(ON_DATABRICKS))

    assert bundle_file["targets"]["dev"]["variables"] == {
        "root": "/Volumes/main/streams/dev/${workspace.current_user.short_name}"
    }
    assert bundle_file["targets"]["prod"]["variables"] == {"root": "/Volumes/main/streams/prod"}
    assert "/Volumes/main/streams/prod" in request["tasks"][0]["python_wheel_task"]["parameters"]


# What is installed: a cluster takes one after the other, and asks an index for what isn't there by then

WHEELS = [
    "wheels/pluggy-1.0-py3-none-any.whl",
    "wheels/pydantic_core-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "wheels/pydantic-1.0-py3-none-any.whl",
    "wheels/gem_bundle-0.1.0-py3-none-any.whl",
    "wheels/acme_gems-1.2.0-py3-none-any.whl",
]
OWN = "clicks_per_minute-1.4.0+g0123456789ab-py3-none-any.whl"


def test_a_job_installs_what_is_in_the_bundle_each_after_what_it_needs() -> None:
    own = bundle(ON_DATABRICKS, jars=(DELTA, ACME))

    assert databricks.wheels(own) == WHEELS
    assert databricks.asked(own) == []
    assert job_in(own)["tasks"][0]["libraries"] == [
        *({"whl": f"../../{path}"} for path in (*WHEELS, OWN)),
        {"maven": {"coordinates": "com.acme:acme-spark:1.2.0"}},
    ]


def test_distributions_that_need_each_other_are_installed_all_the_same() -> None:
    circle = (distribution("a", "b"), distribution("b", "c"), distribution("c", "a"))

    found = databricks.wheels(bundle(ON_DATABRICKS, distributions=circle))

    assert found == [f"wheels/{name}-1.0-py3-none-any.whl" for name in "cba"]


def test_a_job_asks_an_index_where_it_is_told_to() -> None:
    own = bundle(merged(ON_DATABRICKS, libraries="index"), jars=(DELTA, ACME))

    assert databricks.wheels(own) == []
    assert databricks.asked(own) == ["gem-bundle==0.1.0", "acme-gems==1.2.0"]
    assert job_in(own)["tasks"][0]["libraries"] == [
        {"whl": f"../../{OWN}"},
        {"pypi": {"package": "gem-bundle==0.1.0"}},
        {"pypi": {"package": "acme-gems==1.2.0"}},
        {"maven": {"coordinates": "com.acme:acme-spark:1.2.0"}},
    ]


def test_a_thin_bundle_has_to_ask_an_index() -> None:
    thin = bundle(ON_DATABRICKS, deps=None, distributions=())

    assert databricks.wheels(thin) == []
    assert {"pypi": {"package": "gem-bundle==0.1.0"}} in job_in(thin)["tasks"][0]["libraries"]


def test_the_targets_may_differ_in_where_libraries_are_from() -> None:
    own = bundle(merged(ON_DATABRICKS, profiles={"prod": {"libraries": "index"}}), profiles=("prod",))

    assert databricks.wheels(own) == WHEELS
    assert databricks.asked(own) == ["gem-bundle==0.1.0", "acme-gems==1.2.0"]
    assert "wheels/" not in json.dumps(read(own)[2])


def test_a_jar_that_the_platform_brings_is_not_asked_for() -> None:
    brought = replace(
        jar("com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.13.5"), platforms=("databricks",)
    )
    own = bundle(ON_DATABRICKS, jars=(DELTA, brought))
    without_machines = bundle(SERVERLESS, jars=(brought,), pipelines=(pipeline(targets=AVAILABLE_NOW),))

    assert not [library for library in job_in(own)["tasks"][0]["libraries"] if "maven" in library]
    assert "GB602" not in codes(databricks.check(without_machines))


def test_the_request_names_the_wheels_where_they_have_to_be() -> None:
    request = read(bundle(ON_DATABRICKS))[2]
    place = "/Volumes/main/streams/bundles/clicks_per_minute"

    assert request["tasks"][0]["libraries"] == [{"whl": f"{place}/{path}"} for path in (*WHEELS, OWN)]
    assert request["description"].endswith(f"Upload {OWN} and the folder wheels first, to {place}.")


def test_keep_alive_looks_and_leaves() -> None:
    job = job_in(JOBS["keep alive"])

    assert job["schedule"] == {"quartz_cron_expression": "0 */10 * * * ?", "timezone_id": "UTC"}
    assert job["tasks"][0]["python_wheel_task"]["parameters"][-1] == "--keep-alive"


def test_a_continuous_job_retries_as_a_whole() -> None:
    job = job_in(JOBS["continuous"])

    assert job["continuous"] == {"task_retry_mode": "ON_FAILURE"}
    assert "schedule" not in job
    assert not [key for key in job["tasks"][0] if "retr" in key]


def test_serverless_installs_in_its_environment() -> None:
    job = job_in(JOBS["serverless"])

    assert job["environments"][0]["spec"] == {
        "environment_version": "4",
        "dependencies": [f"../../{path}" for path in (*WHEELS, OWN)],
    }
    assert "job_clusters" not in job
    assert "libraries" not in job["tasks"][0]


def test_a_single_node_is_one() -> None:
    cluster = job_in(JOBS["single node"])["job_clusters"][0]["new_cluster"]

    assert cluster["num_workers"] == 0
    assert cluster["spark_conf"]["spark.master"] == "local[*]"
    assert cluster["custom_tags"] == {"ResourceClass": "SingleNode"}


def test_each_pipeline_is_a_task_on_a_cluster_of_its_own() -> None:
    job = job_in(JOBS["two pipelines"])

    assert [task["job_cluster_key"] for task in job["tasks"]] == ["clicks_per_minute", "late_clicks"]
    assert job["tasks"][1]["python_wheel_task"]["parameters"][:2] == ["--pipeline", "late_clicks"]


def test_a_profile_that_differs_has_a_job_of_its_own() -> None:
    built = bundle(merged(ON_DATABRICKS, profiles={"prod": {"cluster": {"workers": 8}}}), profiles=("prod",))
    targets = read(built)[1]["targets"]
    sizes = {
        name: target["resources"]["jobs"]["clicks_per_minute"]["job_clusters"][0]["new_cluster"][
            "num_workers"
        ]
        for name, target in targets.items()
    }
    arguments = {
        name: target["resources"]["jobs"]["clicks_per_minute"]["tasks"][0]["python_wheel_task"]["parameters"]
        for name, target in targets.items()
    }

    assert sizes == {"dev": 2, "prod": 8}
    assert arguments["prod"][:2] == ["--profile", "prod"]
    assert "--profile" not in arguments["dev"]
    assert read(built)[2]["job_clusters"][0]["new_cluster"]["num_workers"] == 8


def test_the_files_are_the_same_every_time() -> None:
    assert databricks.files(full_bundle()) == databricks.files(full_bundle())


# What Databricks can't do


def test_what_is_fine_is_not_complained_of() -> None:
    assert codes(databricks.check(bundle(ON_DATABRICKS))) == []
    assert codes(databricks.check(JOBS["for serverless"])) == []
    assert codes(databricks.check(full_bundle())) == ["GB610"]  # its stop_timeout


@pytest.mark.parametrize("trigger", ["default", "processing_time", "continuous", "real_time"])
def test_serverless_refuses_streams_that_go_on(trigger: str) -> None:
    endless = pipeline(targets=(BundleTarget("table", "delta", trigger),))
    finding = only(databricks.check(bundle(SERVERLESS, pipelines=(endless,))), "GB601")

    assert "target `table`" in finding.message
    assert "available_now" in finding.hint
    assert finding.option == ("cluster", "serverless")


@pytest.mark.parametrize("own", [pipeline(mode="batch"), pipeline(targets=AVAILABLE_NOW)])
def test_serverless_takes_what_ends(own: Any) -> None:
    assert "GB601" not in codes(databricks.check(bundle(SERVERLESS, pipelines=(own,))))


@pytest.mark.parametrize(
    ("job", "differences", "code"),
    [
        (merged(SERVERLESS, continuous=True), {"pipelines": (pipeline(targets=AVAILABLE_NOW),)}, "GB601"),
        (SERVERLESS, {"jars": (ACME,)}, "GB602"),
        (SERVERLESS, {"pipelines": (pipeline(spark=(("spark.executor.memory", "8g"),)),)}, "GB603"),
        (merged(SERVERLESS, cluster={"serverless_version": 2}), {}, "GB604"),
        (merged(ON_DATABRICKS, cluster={"spark_version": "15.4.x-scala2.12"}), {}, "GB604"),
        ({"root": "/Volumes/a"}, {}, "GB605"),
        ({"cluster": ON_DATABRICKS["cluster"]}, {}, "GB606"),
        (ON_DATABRICKS, {"pipelines": (pipeline(checkpoints="s3://a/checkpoints"),)}, "GB607"),
        (ON_DATABRICKS, {"pipelines": (pipeline(parameters=PARAMETERS),)}, "GB608"),
        (merged(ON_DATABRICKS, parameters={"topik": "x"}), {}, "GB608"),
        (merged(ON_DATABRICKS, schedule="30 6 1 * MON"), {}, "GB609"),
        (merged(ON_DATABRICKS, cluster={"spark_version": "17.3.x-scala2.13"}), {}, "GB611"),
        (merged(ON_DATABRICKS, continuous=True), {"pipelines": (pipeline(targets=AVAILABLE_NOW),)}, "GB616"),
        (merged(ON_DATABRICKS, schedule="@daily"), {}, "GB616"),
        (merged(ON_DATABRICKS, libraries="index"), {"missing": ("acme-gems==1.2.0+editable",)}, "GB617"),
        (ON_DATABRICKS, {"deps": None, "missing": ("gem-bundle==0.1.0",)}, "GB617"),
        (merged(ON_DATABRICKS, libraries="bundle"), {"deps": None}, "GB617"),
    ],
)
def test_what_databricks_cannot_do_is_said(
    job: dict[str, Any], differences: dict[str, Any], code: str
) -> None:
    found = [finding for finding in databricks.check(bundle(job, **differences)) if finding.code == code]

    assert found
    assert all(finding.hint for finding in found)


def test_another_python_is_a_warning_only_where_its_wheels_are_for_any() -> None:
    older = merged(ON_DATABRICKS, cluster={"spark_version": "17.3.x-scala2.13"})
    for_any = tuple(found for found in DISTRIBUTIONS if found.file.endswith("-any.whl"))

    refused = only(databricks.check(bundle(older)), "GB611")
    assert refused.severity == "error"
    assert "3.12, which doesn't install `pydantic_core-1.0-cp311" in refused.message
    assert refused.hint.startswith("Build it with `--python 3.12`")
    for fine in (bundle(older, distributions=for_any), bundle({**older, "libraries": "index"})):
        assert only(databricks.check(fine), "GB611").severity == "warning"


def test_a_profile_may_bring_the_parameters() -> None:
    built = bundle(ON_DATABRICKS, pipelines=(pipeline(parameters=PARAMETERS),), profiles=("dev", "prod"))

    assert "GB608" not in codes(databricks.check(built))


def test_parameters_decide_where_checkpoints_are() -> None:
    own = pipeline(checkpoints="${place}/checkpoints")

    assert codes(databricks.check(bundle(ON_DATABRICKS, pipelines=(own,)))) == []


def test_a_schedule_that_quartz_lacks_is_an_error_of_the_build_too() -> None:
    with pytest.raises(GemError) as caught:
        databricks.files(bundle(merged(ON_DATABRICKS, schedule="30 6 1 * MON")))

    assert caught.value.code == "GB609"


def test_a_value_that_databricks_refuses_is_an_error_of_the_build() -> None:
    with pytest.raises(GemError, match="doesn't take `tags`") as caught:
        databricks.files(bundle(merged(ON_DATABRICKS, tags={f"tag{n}": "x" for n in range(60)})))

    assert caught.value.code == "GB618"


# The models are closed


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"max_concurrent_runs": 2}, "max_concurrent_runs"),
        ({"max_concurent_runs": 1}, "max_concurent_runs"),
        ({"timeout_seconds": "7200"}, "timeout_seconds"),
        ({"continuous": {"task_retry_mode": "ALWAYS"}}, "task_retry_mode"),
        (
            {
                "schedule": {
                    "quartz_cron_expression": "0 0 * * * ?",
                    "timezone_id": "UTC",
                    "pause_status": "PAUSED",
                }
            },
            "pause_status",
        ),
        ({"job_clusters": []}, "refers to a cluster"),
        ({"tasks": []}, "tasks"),
    ],
)
def test_no_unknown_field_and_no_wrong_value_gets_through(change: dict[str, Any], problem: str) -> None:
    job = job_in(bundle(ON_DATABRICKS))
    BundleJob.model_validate(job)

    with pytest.raises(ValidationError, match=problem):
        BundleJob.model_validate({**job, **change})


def test_a_continuous_task_with_retries_does_not_get_through() -> None:
    request = read(JOBS["continuous"])[2]
    CreateJob.model_validate(request)
    request["tasks"][0]["max_retries"] = 3

    with pytest.raises(ValidationError, match="no retries of their own"):
        CreateJob.model_validate(request)


def test_a_dynamic_version_does_not_get_through() -> None:
    content = read(bundle(ON_DATABRICKS))[0]
    BundleFile.model_validate(content)
    content["artifacts"]["clicks_per_minute"]["dynamic_version"] = True

    with pytest.raises(ValidationError, match="dynamic_version"):
        BundleFile.model_validate(content)
