"""What Databricks takes: the fields of bundles (`databricks.yml`) and of the Jobs API 2.2 that we use.

Names, types and allowed values are those of the JSON Schema that the Databricks CLI publishes
(`databricks bundle schema`) and of `databricks-sdk`. Databricks' own models for Python, `databricks-bundles`,
have a licence of Databricks' own, so that nothing here depends on them.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from gem_bundler.platforms.shape import Closed, Text

Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
Seconds = Annotated[int, Field(ge=0)]
Environment = Literal["dev", "prod"]


class Autoscale(Closed):
    """How many workers a cluster has."""

    min_workers: int = Field(ge=0)
    max_workers: int = Field(ge=1)


class NewCluster(Closed):
    """A cluster that lives as long as a run."""

    spark_version: Text
    node_type_id: Text | None = None
    driver_node_type_id: Text | None = None
    instance_pool_id: Text | None = None
    policy_id: Text | None = None
    num_workers: int | None = Field(None, ge=0)
    autoscale: Autoscale | None = None
    data_security_mode: Literal["SINGLE_USER", "USER_ISOLATION", "NONE"]
    spark_conf: dict[Text, str] | None = None
    custom_tags: dict[Text, str] | None = Field(None, max_length=45)

    @model_validator(mode="after")
    def _size(self) -> "NewCluster":
        if (self.num_workers is None) == (self.autoscale is None):
            raise ValueError("give either num_workers or autoscale")
        return self


class JobCluster(Closed):
    """A cluster that tasks refer to."""

    job_cluster_key: Key
    new_cluster: NewCluster


class EnvironmentSpec(Closed):
    """What serverless compute installs."""

    environment_version: Annotated[str, StringConstraints(pattern=r"^[0-9]+$")]
    dependencies: list[Text]


class JobEnvironment(Closed):
    """An environment that tasks refer to."""

    environment_key: Key
    spec: EnvironmentSpec


class PythonWheelTask(Closed):
    """What a task calls."""

    package_name: Text
    entry_point: Text
    parameters: list[Text] | None = None


class PyPi(Closed):
    """A distribution from a package index."""

    package: Text


class Maven(Closed):
    """A jar from a Maven repository."""

    coordinates: Annotated[str, StringConstraints(pattern=r"^[^:\s]+:[^:\s]+:[^:\s]+$")]


class Library(Closed):
    """What a cluster installs before a task; exactly one."""

    whl: Annotated[str, StringConstraints(pattern=r"\.whl$")] | None = None
    pypi: PyPi | None = None
    maven: Maven | None = None

    @model_validator(mode="after")
    def _one(self) -> "Library":
        if len(self.model_fields_set) != 1:
            raise ValueError("a library is exactly one of whl, pypi and maven")
        return self


class Task(Closed):
    """A task, on a cluster of its own or on serverless compute."""

    task_key: Key
    description: str | None = None
    job_cluster_key: Key | None = None
    environment_key: Key | None = None
    python_wheel_task: PythonWheelTask
    libraries: list[Library] | None = None
    max_retries: int | None = Field(None, ge=-1)
    min_retry_interval_millis: int | None = Field(None, ge=0)
    retry_on_timeout: bool | None = None

    @model_validator(mode="after")
    def _place(self) -> "Task":
        if (self.job_cluster_key is None) == (self.environment_key is None):
            raise ValueError("a task has either a cluster or an environment")
        if self.environment_key is not None and self.libraries is not None:
            raise ValueError("on serverless compute libraries are the environment's dependencies")
        return self


class CronSchedule(Closed):
    """When a job starts."""

    quartz_cron_expression: Annotated[str, StringConstraints(pattern=r"^\S+( \S+){5,6}$")]
    timezone_id: Text


class Continuous(Closed):
    """There is always a run."""

    task_retry_mode: Literal["NEVER", "ON_FAILURE"]


class Queue(Closed):
    """Whether a run waits while another one goes on."""

    enabled: bool


class EmailNotifications(Closed):
    """Who gets mail."""

    on_start: list[Text] | None = None
    on_success: list[Text] | None = None
    on_failure: list[Text] | None = None


class Webhook(Closed):
    """A notification destination."""

    id: Text


class WebhookNotifications(Closed):
    """What is called; three of a kind at most."""

    on_start: list[Webhook] | None = Field(None, max_length=3)
    on_success: list[Webhook] | None = Field(None, max_length=3)
    on_failure: list[Webhook] | None = Field(None, max_length=3)


class NotificationSettings(Closed):
    """What nobody wants to hear of."""

    no_alert_for_skipped_runs: bool


class RunAs(Closed):
    """Whose rights a job has."""

    user_name: Text | None = None
    service_principal_name: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> "RunAs":
        if len(self.model_fields_set) != 1:
            raise ValueError("a job runs as exactly one")
        return self


PermissionLevel = Literal["CAN_VIEW", "CAN_MANAGE_RUN", "CAN_MANAGE", "IS_OWNER"]


class _Holder(Closed):
    user_name: Text | None = None
    group_name: Text | None = None
    service_principal_name: Text | None = None


class Permission(_Holder):
    """Who may do what, in a bundle."""

    level: PermissionLevel


class AccessControl(_Holder):
    """Who may do what, in the API."""

    permission_level: PermissionLevel


class _AnyJob(Closed):
    name: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    description: str | None = Field(None, max_length=27_700)
    tags: dict[Text, str] | None = Field(None, max_length=25)
    schedule: CronSchedule | None = None
    continuous: Continuous | None = None
    max_concurrent_runs: Literal[1]
    queue: Queue
    timeout_seconds: Seconds | None = None
    email_notifications: EmailNotifications | None = None
    webhook_notifications: WebhookNotifications | None = None
    notification_settings: NotificationSettings | None = None
    run_as: RunAs | None = None
    job_clusters: list[JobCluster] | None = None
    environments: list[JobEnvironment] | None = None
    tasks: list[Task] = Field(min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _consistent(self) -> "_AnyJob":
        if self.schedule is not None and self.continuous is not None:
            raise ValueError("a job is either scheduled or continuous")
        if self.continuous is not None and any(task.max_retries is not None for task in self.tasks):
            raise ValueError("a continuous job's tasks have no retries of their own")
        clusters = {cluster.job_cluster_key for cluster in self.job_clusters or ()}
        environments = {environment.environment_key for environment in self.environments or ()}
        for task in self.tasks:
            if task.job_cluster_key is not None and task.job_cluster_key not in clusters:
                raise ValueError(f"task {task.task_key} refers to a cluster that isn't there")
            if task.environment_key is not None and task.environment_key not in environments:
                raise ValueError(f"task {task.task_key} refers to an environment that isn't there")
        return self


class BundleJob(_AnyJob):
    """A job in a bundle."""

    permissions: list[Permission] | None = None


class CreateJob(_AnyJob):
    """The request that creates a job: POST /api/2.2/jobs/create."""

    access_control_list: list[AccessControl] | None = None


class Resources(Closed):
    """What a bundle deploys."""

    jobs: dict[Key, BundleJob] = Field(min_length=1)


class TargetResources(Closed):
    """What a bundle deploys to one target."""

    resources: Resources


class ResourceFile(Closed):
    """A file of `resources/`: the same job for all targets, or one for each."""

    resources: Resources | None = None
    targets: dict[Environment, TargetResources] | None = None

    @model_validator(mode="after")
    def _one(self) -> "ResourceFile":
        if (self.resources is None) == (self.targets is None):
            raise ValueError("give either resources or targets")
        return self


class ArtifactFile(Closed):
    """A file to upload."""

    source: Annotated[str, StringConstraints(pattern=r"^[^*?\[\]]+$")]


class Artifact(Closed):
    """What is built or, here, was built already."""

    type: Literal["whl"]
    files: list[ArtifactFile] = Field(min_length=1)


class Variable(Closed):
    """A value that targets give."""

    description: Text


class Presets(Closed):
    """What is the same for all jobs of a target."""

    trigger_pause_status: Literal["PAUSED", "UNPAUSED"]
    jobs_max_concurrent_runs: Literal[1]
    artifacts_dynamic_version: Literal[False]


class DeployTarget(Closed):
    """A place to deploy to."""

    mode: Literal["development", "production"]
    default: Literal[True] | None = None
    presets: Presets
    variables: dict[Key, str] | None = None


class BundleSection(Closed):
    """The bundle's own section."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")]


class BundleFile(Closed):
    """`databricks.yml`."""

    bundle: BundleSection
    include: list[Text]
    artifacts: dict[Key, Artifact]
    variables: dict[Key, Variable] | None = None
    targets: dict[Environment, DeployTarget]
