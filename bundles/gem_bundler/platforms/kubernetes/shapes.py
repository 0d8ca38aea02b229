# ruff: noqa: N815 (the names are spelt as Kubernetes spells them)
"""What the two Spark operators take, as far as we use it.

Names, types and allowed values are those of the operators' resource definitions: Kubeflow's
`sparkoperator.k8s.io/v1beta2` and Apache's `spark.apache.org/v1`.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from gem_bundler.platforms.shape import Closed, Text

# A pod's name has 63 characters at most. The driver's is the application's and `-driver`; that of an
# application that a schedule starts is the schedule's, a hyphen and the time in nanoseconds.
LONGEST_NAME = 56
LONGEST_SCHEDULED_NAME = 36
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
LabelKey = Annotated[
    str,
    StringConstraints(
        pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
    ),
]
LabelValue = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$", max_length=63)
]
Memory = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*[mgt]$")]
Positive = Annotated[int, Field(ge=1)]


class Metadata(Closed):
    """What Kubernetes knows of an object."""

    name: Annotated[Name, StringConstraints(max_length=LONGEST_NAME)]
    namespace: Name | None = None
    labels: dict[LabelKey, LabelValue]
    annotations: dict[LabelKey, str] | None = None


class SecretKeyRef(Closed):
    """One value of a Secret."""

    name: Text
    key: Text


class ValueFrom(Closed):
    """Where a variable's value is from."""

    secretKeyRef: SecretKeyRef


class EnvVar(Closed):
    """An environment variable."""

    name: Text
    valueFrom: ValueFrom


class HttpGet(Closed):
    """Whom a probe asks, and what."""

    path: Annotated[str, StringConstraints(pattern=r"^/")]
    port: Annotated[int, Field(ge=1, le=65535)]


class Probe(Closed):
    """How a container is asked whether it is well; times in seconds."""

    httpGet: HttpGet
    periodSeconds: Positive
    timeoutSeconds: Positive
    failureThreshold: Positive


class Container(Closed):
    """What of the driver's container Spark's settings can't say."""

    name: Literal["spark-kubernetes-driver"]
    startupProbe: Probe
    livenessProbe: Probe
    readinessProbe: Probe


class DriverPodSpec(Closed):
    """Kubeflow: what of the driver's pod its own fields can't say."""

    containers: list[Container]


class DriverTemplate(Closed):
    """Kubeflow: the template of the driver's pod."""

    spec: DriverPodSpec


class Driver(Closed):
    """Kubeflow: the driver's pod."""

    cores: Positive | None = None
    memory: Memory | None = None
    serviceAccount: Text
    labels: dict[LabelKey, LabelValue] | None = None
    env: list[EnvVar] | None = None
    terminationGracePeriodSeconds: Positive
    template: DriverTemplate | None = None


class Executor(Closed):
    """Kubeflow: the executors' pods."""

    instances: Positive | None = None
    cores: Positive | None = None
    memory: Memory | None = None
    labels: dict[LabelKey, LabelValue] | None = None
    terminationGracePeriodSeconds: Positive | None = None


class DynamicAllocation(Closed):
    """Kubeflow: as many executors as the work needs."""

    enabled: Literal[True]
    initialExecutors: Positive
    minExecutors: Positive
    maxExecutors: Positive
    shuffleTrackingEnabled: Literal[True]


class RestartPolicy(Closed):
    """Kubeflow: what happens when a run ends or fails; times in seconds."""

    type: Literal["Never", "Always", "OnFailure"]
    onFailureRetries: Annotated[int, Field(ge=0)] | None = None
    onFailureRetryInterval: Positive | None = None
    onSubmissionFailureRetries: Annotated[int, Field(ge=0)] | None = None
    onSubmissionFailureRetryInterval: Positive | None = None


class Deps(Closed):
    """Kubeflow: what is put beside the application."""

    jars: list[Annotated[str, StringConstraints(pattern=r"^local:///")]]


class KubeflowSpec(Closed):
    """Kubeflow: an application."""

    type: Literal["Python"]
    pythonVersion: Literal["3"]
    mode: Literal["cluster"]
    sparkVersion: Text
    image: Text
    imagePullPolicy: Literal["IfNotPresent", "Always"]
    imagePullSecrets: list[Text] | None = None
    mainApplicationFile: Annotated[str, StringConstraints(pattern=r"^local:///")]
    arguments: list[str] | None = None
    deps: Deps | None = None
    sparkConf: dict[Text, str] | None = None
    restartPolicy: RestartPolicy
    dynamicAllocation: DynamicAllocation | None = None
    driver: Driver
    executor: Executor


class KubeflowApplication(Closed):
    """Kubeflow's SparkApplication."""

    apiVersion: Literal["sparkoperator.k8s.io/v1beta2"]
    kind: Literal["SparkApplication"]
    metadata: Metadata
    spec: KubeflowSpec


class ScheduledSpec(Closed):
    """Kubeflow: when an application is started."""

    schedule: Text
    timeZone: Text
    concurrencyPolicy: Literal["Forbid"]
    successfulRunHistoryLimit: Positive
    failedRunHistoryLimit: Positive
    template: KubeflowSpec


class KubeflowSchedule(Closed):
    """Kubeflow's ScheduledSparkApplication."""

    apiVersion: Literal["sparkoperator.k8s.io/v1beta2"]
    kind: Literal["ScheduledSparkApplication"]
    metadata: Metadata
    spec: ScheduledSpec


class PodSpec(Closed):
    """Apache: what of a pod Spark's settings can't say."""

    terminationGracePeriodSeconds: Positive
    containers: list[Container] | None = None


class TemplateMetadata(Closed):
    """Apache: the labels of a pod."""

    labels: dict[LabelKey, LabelValue]


class PodTemplate(Closed):
    """Apache: the template of a pod."""

    metadata: TemplateMetadata | None = None
    spec: PodSpec | None = None


class TemplateSpec(Closed):
    """Apache: the driver's or the executors' pods."""

    podTemplateSpec: PodTemplate


class RestartConfig(Closed):
    """Apache: what happens when a run ends or fails; times in milliseconds."""

    restartPolicy: Literal["Always", "Never", "OnFailure", "OnInfrastructureFailure"]
    maxRestartAttempts: Annotated[int, Field(ge=0)] | None = None
    restartBackoffMillis: Positive | None = None


class TimeoutConfig(Closed):
    """Apache: how long the operator waits."""

    forceTerminationGracePeriodMillis: Positive


class Tolerations(Closed):
    """Apache: what the operator puts up with."""

    restartConfig: RestartConfig
    applicationTimeoutConfig: TimeoutConfig
    resourceRetainPolicy: Literal["Always", "Never", "OnFailure"]


class RuntimeVersions(Closed):
    """Apache: what the image has."""

    sparkVersion: Text
    scalaVersion: Text


class ApacheSpec(Closed):
    """Apache: an application."""

    runtimeVersions: RuntimeVersions
    deploymentMode: Literal["ClusterMode"]
    pyFiles: Annotated[str, StringConstraints(pattern=r"^local:///[^,]+\.py$")]
    driverArgs: list[str] | None = None
    sparkConf: dict[Text, str]
    applicationTolerations: Tolerations
    driverSpec: TemplateSpec
    executorSpec: TemplateSpec | None = None


class ApacheApplication(Closed):
    """Apache's SparkApplication."""

    apiVersion: Literal["spark.apache.org/v1"]
    kind: Literal["SparkApplication"]
    metadata: Metadata
    spec: ApacheSpec
