"""The `job:` section of a pipeline file: when the pipeline runs on a cluster, and on what.

One description for all platforms. What one of them can't do is said when the bundle is built.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from gem_bundle.types import Interval, OnlyTrue, StringList, interval_length
from gem_bundler.job import cron
from gem_bundler.job.runtimes import LEAST_RUNTIME, SPARK_OF_RUNTIME, runtime_of


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def seconds(length: str) -> int:
    """A length of time of the `job:` section in whole seconds, at least one."""
    return max(1, interval_length(length)[1] // 1_000_000)


def _check_length(text: str) -> str:
    if interval_length(text)[0]:
        raise ValueError("write it in days: months and years vary in length")
    if interval_length(text)[1] < 1_000_000:
        raise ValueError("it must be a second or longer")
    return text


Length = Annotated[Interval, AfterValidator(_check_length)]


def _check_period(text: str) -> str:
    period = re.sub(r"\s*every\s+", "", text, count=1, flags=re.IGNORECASE).strip()
    period = re.sub(r"^(minute|hour|day)$", r"1 \1", period, flags=re.IGNORECASE)
    months, microseconds = interval_length(period)
    if months or microseconds % 60_000_000:
        raise ValueError("write whole minutes or hours, for example `every 10 minutes`")
    cron.every(microseconds // 60_000_000)
    return period


def _check_cron(text: str) -> str:
    cron.parse(text)
    return text.strip()


def _check_timezone(name: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if not available_timezones():
            return name  # this machine has no time zones to compare it with
        raise ValueError("write a time zone by its IANA name, for example `Europe/Zurich`") from None
    return name


def _check_memory(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*[mgt]", text):
        raise ValueError("write memory as Spark does: a whole number and m, g or t, for example `4g`")
    return text


def _check_text(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be a text of printable characters")
    return text


def _check_image(text: str) -> str:
    if not re.fullmatch(
        r"[a-zA-Z0-9][\w.:/-]*?(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?", text, flags=re.ASCII
    ):
        raise ValueError(
            "write an image as `registry/name`, `registry/name:tag` or, which is what to deploy, "
            "`registry/name@sha256:` and 64 hexadecimal digits"
        )
    return text


def _check_kubernetes_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", text):
        raise ValueError("Kubernetes names are lower-case letters, digits and hyphens, 63 at most")
    return text


def _check_address(text: str) -> str:
    from gem_bundle.run.serving.address import parse_address

    parse_address(text)
    return text.strip()


def _check_root(text: str) -> str:
    if not re.match(r"(/|[A-Za-z][A-Za-z0-9+.-]+:/)", text) or not text.isprintable():
        raise ValueError("write an absolute folder or a URL, for example `s3a://streams/clicks`")
    return text.rstrip("/") or "/"


def _check_webhook(name: str) -> str:
    if "://" in name:
        raise ValueError(
            "Databricks takes the id of a notification destination, not a URL: an administrator makes the "
            "destination under Settings, Notifications"
        )
    return _check_text(name)


def _number_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


_Text = Annotated[str, AfterValidator(_check_text)]
_Memory = Annotated[str, AfterValidator(_check_memory)]
_Image = Annotated[str, AfterValidator(_check_image)]
_KubernetesName = Annotated[str, AfterValidator(_check_kubernetes_name)]
_CronText = Annotated[str, AfterValidator(_check_cron)]


class Schedule(_Shape):
    """When a job starts, by the clock."""

    cron: _CronText = Field(
        description="Minute, hour, day of the month, month and day of the week as in a crontab, or "
        "`@hourly`, `@daily`, `@weekly`, `@monthly`.",
        examples=["30 6 * * MON-FRI"],
    )
    timezone: Annotated[str, AfterValidator(_check_timezone)] = Field(
        "UTC", description="The time zone by its IANA name.", examples=["Europe/Zurich"]
    )


class Workers(_Shape):
    """How many executors there are, as many as the work needs between two numbers."""

    min: int = Field(ge=1, description="The least number of executors.")
    max: int = Field(ge=1, description="The greatest number of executors.")

    @model_validator(mode="after")
    def _in_order(self) -> "Workers":
        if self.min > self.max:
            raise ValueError(f"`min` is {self.min} and `max` is {self.max}: the first must not be greater")
        return self


class Machine(_Shape):
    """What the driver or an executor gets."""

    cores: int | None = Field(None, ge=1, description="Its number of cores.")
    memory: _Memory | None = Field(
        None, description="The memory of its JVM, as Spark writes it.", examples=["4g"]
    )


class Cluster(_Shape):
    """What a job runs on."""

    workers: int | Workers = Field(
        2, description="How many executors there are, or `min` and `max`; 0 is a single node (Databricks)."
    )
    driver: Machine = Field(default_factory=Machine, description="What the driver gets.")
    executor: Machine = Field(default_factory=Machine, description="What each executor gets.")
    node_type: _Text | None = Field(
        None, description="Databricks: the type of the nodes.", examples=["i3.xlarge"]
    )
    driver_node_type: _Text | None = Field(
        None, description="Databricks: the type of the driver's node, where it is another one."
    )
    spark_version: _Text | None = Field(
        None, description="Databricks: the runtime.", examples=["19.x-scala2.13"]
    )
    policy: _Text | None = Field(None, description="Databricks: the id of the cluster policy.")
    pool: _Text | None = Field(
        None, description="Databricks: the id of the instance pool the nodes are from."
    )
    serverless: bool = Field(
        False, description="Databricks: run on serverless compute; for what ends by itself only."
    )
    serverless_version: Annotated[str, BeforeValidator(_number_as_text)] = Field(
        "4", pattern=r"^[0-9]+$", description="Databricks: the version of the serverless environment."
    )
    master: _Text | None = Field(
        None,
        description="spark-submit: the cluster manager's URL, unless `submit.sh` is given another.",
        examples=["spark://host:7077", "yarn"],
    )
    deploy_mode: Literal["client", "cluster"] | None = Field(
        None, description="spark-submit: where the driver runs, unless `submit.sh` is told otherwise."
    )
    image: _Image | None = Field(
        None,
        description="Kubernetes: the image that the bundle's Dockerfile makes, by digest.",
        examples=["registry.example.com/clicks@${env:IMAGE_DIGEST}"],
    )
    base_image: _Image | None = Field(
        None,
        description="Kubernetes: an image with Spark, Java and Python to build on; by default Spark's own "
        "with the bundle's version of Python added.",
    )
    image_pull_secret: _KubernetesName | None = Field(
        None, description="Kubernetes: the Secret with the registry's login."
    )
    namespace: _KubernetesName | None = Field(None, description="Kubernetes: the namespace.")
    service_account: _KubernetesName = Field(
        "spark", description="Kubernetes: the account that may start executors."
    )
    secret: _KubernetesName | None = Field(
        None, description="Kubernetes: the Secret that holds the pipeline's secrets."
    )

    @model_validator(mode="after")
    def _compatible(self) -> "Cluster":
        if isinstance(self.workers, int) and not 0 <= self.workers <= 10_000:
            raise ValueError("`workers` must be 0 to 10,000")
        own = ("node_type", "driver_node_type", "spark_version", "policy", "pool")
        given = [f"`{name}`" for name in own if getattr(self, name) is not None]
        if self.serverless and given:
            raise ValueError(f"`serverless` goes without {', '.join(given)}: Databricks chooses the nodes")
        if self.pool and self.node_type:
            raise ValueError("give either `pool` or `node_type`: a pool's nodes have a type already")
        return self

    @property
    def most_workers(self) -> int:
        """The greatest number of executors."""
        return self.workers if isinstance(self.workers, int) else self.workers.max


class Retries(_Shape):
    """What happens when a run fails."""

    max: int = Field(ge=0, le=10_000, description="How often a failed run is started again.")
    wait: Length = Field("1 minute", description="How long it is until then.")


class Principal(_Shape):
    """Somebody on Databricks; exactly one of its keys."""

    user: _Text | None = Field(None, description="A user by mail address.")
    group: _Text | None = Field(None, description="A group by name.")
    service_principal: _Text | None = Field(None, description="A service principal by application id.")

    @model_validator(mode="after")
    def _one(self) -> "Principal":
        if sum(bool(name) for name in (self.user, self.group, self.service_principal)) != 1:
            raise ValueError("name exactly one of `user`, `group` and `service_principal`")
        return self


class Permission(Principal):
    """What somebody may do with the job on Databricks."""

    level: Literal["view", "run", "manage", "owner"] = Field(description="What they may do.")


class Recipients(_Shape):
    """Who hears of a run on Databricks."""

    email: StringList = Field(default_factory=list, description="Mail addresses.")
    webhook: list[Annotated[str, AfterValidator(_check_webhook)]] = Field(
        default_factory=list, max_length=3, description="The ids of notification destinations, three at most."
    )


class Notifications(_Shape):
    """Who hears of what on Databricks."""

    on_start: Recipients | None = Field(None, description="When a run starts.")
    on_success: Recipients | None = Field(None, description="When a run ends well.")
    on_failure: Recipients | None = Field(None, description="When a run fails.")


_Value = str | int | float | bool


class JobDifferences(_Shape):
    """The `job:` section as a profile may give it: what differs."""

    name: _Text | None = Field(None, description="The job's name; by default the pipeline's.")
    schedule: _CronText | Schedule | None = Field(
        None, description="When the job starts, as in a crontab; a run that is still going is left alone."
    )
    keep_alive: Annotated[str, AfterValidator(_check_period)] | None = Field(
        None,
        description="How often to see whether the stream is running, and to start it if it isn't.",
        examples=["every 10 minutes"],
    )
    continuous: OnlyTrue | None = Field(
        None, description="There is always a run: when one ends or fails, the platform starts the next."
    )
    root: Annotated[str, AfterValidator(_check_root)] | None = Field(
        None,
        description="The folder or URL that the pipeline's relative paths are relative to on the cluster.",
        examples=["s3a://streams/clicks", "/Volumes/main/streams/clicks"],
    )
    parameters: dict[str, _Value | list[_Value]] | None = Field(
        None, description="The values of the pipeline's parameters in this job."
    )
    cluster: Cluster = Field(default_factory=Cluster, description="What the job runs on.")
    libraries: Literal["bundle", "index"] = Field(
        "bundle",
        description="Databricks: where the Python distributions that the job installs are from: the bundle, "
        "which holds them as they were locked, or the workspace's package index.",
    )
    retries: int | Retries = Field(0, description="How often a failed run is started again.")
    timeout: Length | None = Field(None, description="How long a run may take.")
    stop_timeout: Length = Field(
        "5 minutes", description="How long a running micro-batch has to end when the job is stopped."
    )
    serve: Annotated[str, BeforeValidator(_number_as_text), AfterValidator(_check_address)] | None = Field(
        None,
        description="Where the run answers over HTTP, `[HOST:]PORT`, as `gem-bundle run --serve`; on "
        "Kubernetes its probes ask there, and without a host it listens on all addresses.",
        examples=["8080"],
    )
    tags: dict[str, Annotated[str, BeforeValidator(_number_as_text)]] | None = Field(
        None, description="Tags of the job and its cluster; labels on Kubernetes."
    )
    run_as: Principal | None = Field(None, description="Databricks: whose rights the job has.")
    permissions: list[Permission] | None = Field(
        None, description="Databricks: who may do what with the job."
    )
    notifications: Notifications | None = Field(None, description="Databricks: who hears of its runs.")

    @model_validator(mode="after")
    def _compatible(self) -> "JobDifferences":
        rules = ("schedule", "keep_alive", "continuous")
        given = [f"`{name}`" for name in rules if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"a job has one of {' and '.join(given)}, not {len(given)} of them")
        if isinstance(self.retries, int) and not 0 <= self.retries <= 10_000:
            raise ValueError("`retries` must be 0 to 10,000")
        if self.run_as is not None and self.run_as.group:
            raise ValueError("a job runs as a `user` or a `service_principal`, not as a group")
        return self


class Job(JobDifferences):
    """The `job:` section of a pipeline file."""

    profiles: dict[str, JobDifferences] = Field(
        default_factory=dict, description="What differs with a profile, for `--profile`."
    )

    @model_validator(mode="after")
    def _profiles_fit(self) -> "Job":
        for name in self.profiles:
            try:
                self.for_profile(name)
            except ValidationError as error:
                reasons = "; ".join(
                    d["msg"].removeprefix("Value error, ") for d in error.errors(include_url=False)
                )
                raise ValueError(f"with profile `{name}`: {reasons}") from None
        return self

    def for_profile(self, name: str | None) -> "Job":
        """The job with a profile's differences; the job as it is where the profile has none.

        Mappings are merged key by key, everything else is replaced; null takes a key away. A profile
        that says when the job runs replaces how it is said.
        """
        if name is None or name not in self.profiles:
            return self.model_copy(update={"profiles": {}})
        own = self.model_dump(exclude_unset=True, exclude={"profiles"})
        different = self.profiles[name].model_dump(exclude_unset=True)
        if any(different.get(rule) is not None for rule in ("schedule", "keep_alive", "continuous")):
            for rule in ("schedule", "keep_alive", "continuous"):
                own.pop(rule, None)
        return Job.model_validate(_merged(own, different))

    def target_spark(self, profile: str | None) -> str | None:
        """The Spark of the runtime that the job names; without a profile the oldest one of all profiles."""
        profiles = [profile] if profile is not None else [None, *self.profiles]
        named = {runtime_of(self.for_profile(name).cluster.spark_version) for name in profiles}
        # An older runtime can't run any pipeline, and building for it says so.
        known = [major for major in SPARK_OF_RUNTIME if major in named and major >= LEAST_RUNTIME]
        return SPARK_OF_RUNTIME[min(known)] if known else None

    @property
    def timetable(self) -> Schedule | None:
        """When the job is started by the clock: its schedule, or the times at which it is kept alive."""
        if self.keep_alive is not None:
            return Schedule(cron=str(cron.every(seconds(self.keep_alive) // 60)))
        if isinstance(self.schedule, str):
            return Schedule(cron=self.schedule)
        return self.schedule

    @property
    def restarts(self) -> Retries:
        """What happens when a run fails."""
        return Retries(max=self.retries) if isinstance(self.retries, int) else self.retries


def _merged(own: dict[str, Any], different: dict[str, Any]) -> dict[str, Any]:
    found = dict(own)
    for key, value in different.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = _merged(found[key], value)
        else:
            found[key] = value
    return found
