"""The `job:` section: what it takes, and how profiles change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gem_bundle.check.checker import check_file
from gem_bundle.pipeline.problems import problems
from gem_bundler.job import cron
from gem_bundler.job.section import Job, Schedule, seconds
from tests.bundles.bundles_for_jobs import EVERYTHING

if TYPE_CHECKING:
    from pathlib import Path


def complaints(raw: dict[str, Any]) -> list[str]:
    """What the loader would say of a `job:` section."""
    with pytest.raises(ValidationError) as caught:
        Job.model_validate(raw)
    found = problems(caught.value, raw, Job)
    return [f"{problem.message} {problem.hint}".strip() for problem in found]


def test_a_job_needs_nothing() -> None:
    job = Job.model_validate({})

    assert job.timetable is None
    assert job.restarts.max == 0
    assert job.cluster.workers == 2


def test_everything_can_be_said() -> None:
    job = Job.model_validate(EVERYTHING)

    assert job.timetable == Schedule(cron="30 6 * * MON-FRI", timezone="Europe/Zurich")
    assert (job.restarts.max, seconds(job.restarts.wait)) == (3, 120)
    assert job.cluster.most_workers == 8
    assert job.tags == {"team": "web", "cost-centre": "12"}


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ({"schedul": "@daily"}, "unknown key `schedul` Did you mean `schedule`?"),
        ({"cluster": {"nodetype": "x"}}, "unknown key `nodetype` Did you mean `node_type`?"),
        ({"profiles": {"prod": {"retires": 3}}}, "unknown key `retires`"),
        (
            {"schedule": "@daily", "continuous": True},
            "a job has one of `schedule` and `continuous`, not 2 of them",
        ),
        ({"continuous": False}, "`continuous` must be true, not `false`"),
        ({"schedule": "0 0 6 * * ?"}, "leave out the seconds and the year"),
        ({"schedule": "61 * * * *"}, "`61` is no minute: it is 0 to 59"),
        ({"schedule": {"cron": "@daily", "timezone": "Zurich"}}, "write a time zone by its IANA name"),
        ({"keep_alive": "every 7 minutes"}, "write minutes that divide an hour"),
        ({"keep_alive": "every 30 seconds"}, "write whole minutes or hours"),
        ({"keep_alive": "every month"}, "write whole numbers with units"),
        ({"root": "data"}, "write an absolute folder or a URL"),
        ({"timeout": "1 month"}, "months and years vary in length"),
        ({"timeout": "10 milliseconds"}, "it must be a second or longer"),
        ({"retries": -1}, "`retries` must be 0 to 10,000"),
        ({"retries": {"max": "many"}}, "must be a whole number"),
        ({"cluster": {"workers": {"min": 5, "max": 2}}}, "the first must not be greater"),
        ({"cluster": {"workers": -1}}, "`workers` must be 0 to 10,000"),
        ({"cluster": {"driver": {"memory": "4 GB"}}}, "write memory as Spark does"),
        ({"cluster": {"image": "Clicks Image"}}, "write an image as"),
        ({"cluster": {"image": "clicks@sha256:0123"}}, "64 hexadecimal digits"),
        ({"cluster": {"namespace": "My_Streams"}}, "Kubernetes names are lower-case letters"),
        (
            {"cluster": {"serverless": True, "node_type": "i3.xlarge"}},
            "`serverless` goes without `node_type`",
        ),
        ({"cluster": {"pool": "p", "node_type": "i3.xlarge"}}, "give either `pool` or `node_type`"),
        ({"permissions": [{"level": "run"}]}, "name exactly one of `user`, `group`"),
        ({"permissions": [{"user": "a", "level": "admin"}]}, "`manage`"),
        ({"run_as": {"group": "data"}}, "a job runs as a `user` or a `service_principal`"),
        (
            {"notifications": {"on_failure": {"webhook": ["https://example.com/hook"]}}},
            "the id of a notification destination, not a URL",
        ),
        (
            {"cluster": {"node_type": "x"}, "profiles": {"prod": {"cluster": {"serverless": True}}}},
            "with profile `prod`: `serverless` goes without `node_type`",
        ),
    ],
)
def test_what_is_wrong_is_said_in_words(raw: dict[str, Any], complaint: str) -> None:
    assert complaint in " | ".join(complaints(raw))


def test_every_key_is_described() -> None:
    schema = Job.model_json_schema()
    for name, model in [("Job", schema), *schema["$defs"].items()]:
        assert model["additionalProperties"] is False, name
        for key, field in model["properties"].items():
            assert field.get("description"), f"{name}.{key}"


# Profiles


def test_a_profile_changes_what_it_names_and_nothing_else() -> None:
    job = Job.model_validate(
        {
            "retries": 3,
            "tags": {"team": "web", "stage": "test"},
            "cluster": {"workers": 2, "node_type": "small", "driver": {"memory": "2g", "cores": 2}},
            "profiles": {
                "prod": {"tags": {"stage": "prod"}, "cluster": {"workers": 8, "driver": {"memory": "8g"}}}
            },
        }
    ).for_profile("prod")

    assert job.retries == 3
    assert job.tags == {"team": "web", "stage": "prod"}
    assert (job.cluster.workers, job.cluster.node_type) == (8, "small")
    assert (job.cluster.driver.memory, job.cluster.driver.cores) == ("8g", 2)
    assert job.profiles == {}


@pytest.mark.parametrize("profile", [None, "test"])
def test_without_differences_the_job_stays(profile: str | None) -> None:
    job = Job.model_validate({"retries": 3, "profiles": {"prod": {"retries": 5}}})

    assert job.for_profile(profile) == Job.model_validate({"retries": 3})


def test_a_profile_that_says_when_replaces_how_it_was_said() -> None:
    job = Job.model_validate(
        {"schedule": "@daily", "profiles": {"prod": {"continuous": True}, "dev": {"schedule": None}}}
    )

    assert job.for_profile("prod").continuous
    assert job.for_profile("prod").timetable is None
    assert job.for_profile("dev").timetable is None


def test_null_takes_a_key_away() -> None:
    job = Job.model_validate(
        {
            "cluster": {"node_type": "small", "spark_version": "19.x-scala2.13"},
            "profiles": {"prod": {"cluster": {"serverless": True, "node_type": None, "spark_version": None}}},
        }
    ).for_profile("prod")

    assert job.cluster.serverless
    assert job.cluster.node_type is None


@pytest.mark.parametrize(
    ("runtime", "prod", "profile", "spark"),
    [
        ("17.3.x-scala2.13", {}, None, "4.0"),
        ("18.x-photon-scala2.13", {}, "dev", "4.1"),
        ("19.x-scala2.13", {"spark_version": "18.1.x-scala2.13"}, "prod", "4.1"),
        ("19.x-scala2.13", {"spark_version": "18.1.x-scala2.13"}, "dev", "4.2"),
        ("19.x-scala2.13", {"spark_version": "18.1.x-scala2.13"}, None, "4.1"),
        ("18.x-scala2.13", {"spark_version": "19.x-scala2.13"}, None, "4.1"),
        ("15.4.x-scala2.12", {}, None, None),
        ("99.x-scala2.13", {}, None, None),
        ("auto:latest", {}, None, None),
        (None, {"serverless": True}, "prod", None),
    ],
)
def test_a_runtime_is_a_spark(
    runtime: str | None, prod: dict[str, Any], profile: str | None, spark: str | None
) -> None:
    job = Job.model_validate({"cluster": {"spark_version": runtime}, "profiles": {"prod": {"cluster": prod}}})

    assert job.target_spark(profile) == spark


def test_a_check_judges_by_the_runtime(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "pipeline: p\njob: {cluster: {spark_version: 17.3.x-scala2.13}}\n"
        "sources:\n  s: {gem: kafka, options: {bootstrap_servers: ['b:9092'], subscribe: t}}\n"
        "targets:\n  t: {gem: console, input: s, output_mode: update, trigger: {real_time: 5 minutes}}\n"
    )

    assert [(d.code, d.line, d.message, d.hint) for d in check_file(file).diagnostics if d.is_error] == [
        (
            "GB370",
            6,
            "target `t`: PySpark has the trigger `real_time` since 4.2, not in 4.0",
            "Remove it, or name a newer Spark in the pipeline's section `job`.",
        )
    ]


# Times


@pytest.mark.parametrize(
    ("keep_alive", "expected"),
    [
        ("every 10 minutes", "*/10 * * * *"),
        ("10 minutes", "*/10 * * * *"),
        ("every minute", "* * * * *"),
        ("Every 2 hours", "0 */2 * * *"),
        ("every hour", "0 * * * *"),
        ("every day", "0 0 * * *"),
    ],
)
def test_keep_alive_is_a_schedule(keep_alive: str, expected: str) -> None:
    assert Job.model_validate({"keep_alive": keep_alive}).timetable == Schedule(cron=expected)


@pytest.mark.parametrize(
    ("crontab", "quartz"),
    [
        ("@daily", "0 0 0 * * ?"),
        ("*/15 * * * *", "0 */15 * * * ?"),
        ("30 6 * * 1-5", "0 30 6 ? * MON-FRI"),
        ("30 6 * * mon-fri", "0 30 6 ? * MON-FRI"),
        ("0 0 * * 0", "0 0 0 ? * SUN"),
        ("0 0 * * 7", "0 0 0 ? * SUN"),
        ("0 0 * * 5-7", "0 0 0 ? * SUN,FRI,SAT"),
        ("0 0 * * */2", "0 0 0 ? * SUN,TUE,THU,SAT"),
        ("0 0 * * 0-6", "0 0 0 * * ?"),
        ("0 0 1,15 jan-jun *", "0 0 0 1,15 JAN-JUN ?"),
        ("5-55/10 8-18 * * *", "0 5-55/10 8-18 * * ?"),
    ],
)
def test_crontab_becomes_quartz(crontab: str, quartz: str) -> None:
    assert cron.parse(crontab).quartz() == quartz


@pytest.mark.parametrize(
    "text",
    [
        *("", "* * * *", "@sometimes", "5/10 * * * *", "10-5 * * * *", "*/0 * * * *", "*/61 * * * *"),
        *("* * L * *", "* * * * MON#1", "a * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *"),
        *("* * * * 8", "1,,2 * * * *", "-1 * * * *", "٣ * * * *", "0 " * 1000),
    ],
)
def test_what_is_no_crontab_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        cron.parse(text)


def test_quartz_has_one_kind_of_days() -> None:
    schedule = cron.parse("30 6 1 * MON")

    assert schedule.has_two_kinds_of_days
    with pytest.raises(ValueError, match="not both"):
        schedule.quartz()


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        schedule = cron.parse(text)
    except ValueError:
        return
    assert cron.parse(str(schedule)) == schedule


@given(st.integers(-10, 3000))
def test_what_comes_round_evenly_does_so_all_day(minutes: int) -> None:
    try:
        schedule = cron.every(minutes)
    except ValueError:
        assert minutes <= 0 or (60 % minutes and (minutes % 60 or 1440 % minutes))
        return
    assert 1440 % minutes == 0
    assert cron.parse(str(schedule)) == schedule
