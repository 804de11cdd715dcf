"""The sections of the spec that describe the pods of each component."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from caraway_kube.resources.base import (
    Annotations,
    JsonObject,
    JsonObjects,
    Labels,
    ObjectName,
    Quantity,
    Seconds,
    Size,
    SpecSection,
    as_tuple,
    rules,
)

PullPolicy = Literal["Always", "IfNotPresent", "Never"]


Names = Annotated[tuple[ObjectName, ...], Field(max_length=16), BeforeValidator(as_tuple)]
Repository = Annotated[
    str, Field(min_length=1, max_length=512, pattern=r"^[a-z0-9][a-zA-Z0-9._:/\[\]-]*$")
]
Tag = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
Digest = Annotated[str, Field(max_length=140, pattern=r"^[a-z0-9]+:[a-f0-9]{32,128}$")]
Quantities = Annotated[dict[str, Quantity], Field(max_length=16)]


class ImageSpec(SpecSection):
    """The image of all pods, unless a component has its own."""

    repository: Repository = Field(default="caraway", description="Registry and name of the image.")
    tag: Tag | None = Field(
        default=None, description="Tag. By default the version of the operator."
    )
    digest: Digest | None = Field(
        default=None, description="Digest, which takes precedence over the tag."
    )
    pull_policy: PullPolicy = Field(default="IfNotPresent", description="Image pull policy.")
    pull_secrets: Names = Field(
        default=(), description="Names of Secrets with registry credentials."
    )


class ComponentImageSpec(SpecSection):
    """The image of one component, if it differs."""

    repository: Repository | None = Field(
        default=None, description="Registry and name of the image."
    )
    tag: Tag | None = Field(default=None, description="Tag.")
    digest: Digest | None = Field(
        default=None, description="Digest, which takes precedence over the tag."
    )


class ContainerResources(SpecSection):
    """Requests and limits of a container. Omitted values have defaults.

    Memory always has a limit, because shared memory and the engine's budget are fractions of it. By
    default the limit is the request.
    """

    requests: Quantities = Field(
        default_factory=dict, description="Requests: cpu, memory, ephemeral-storage."
    )
    limits: Quantities = Field(
        default_factory=dict, description="Limits. CPU is unlimited by default."
    )


class ProbesSpec(SpecSection):
    """Fields that are merged into the probes of the operator."""

    startup: JsonObject | None = Field(default=None, description="Merged into the startup probe.")
    readiness: JsonObject | None = Field(
        default=None, description="Merged into the readiness probe."
    )
    liveness: JsonObject | None = Field(default=None, description="Merged into the liveness probe.")


class ComponentSpec(SpecSection):
    """Fields of every component."""

    image: ComponentImageSpec = Field(
        default=ComponentImageSpec(), description="Image, if it differs from `spec.image`."
    )
    resources: ContainerResources = Field(
        default=ContainerResources(), description="CPU and memory of the container."
    )
    env: JsonObjects = Field(
        default=(), description="Additional environment variables (core/v1 EnvVar)."
    )
    env_from: JsonObjects = Field(
        default=(), description="Sources of environment variables (core/v1 EnvFromSource)."
    )
    volumes: JsonObjects = Field(default=(), description="Additional volumes (core/v1 Volume).")
    volume_mounts: JsonObjects = Field(
        default=(), description="Additional volume mounts (core/v1 VolumeMount)."
    )
    pod_labels: Labels = Field(default_factory=dict, description="Additional labels of the pods.")
    pod_annotations: Annotations = Field(
        default_factory=dict, description="Additional annotations of the pods."
    )
    node_selector: Labels = Field(
        default_factory=dict, description="Labels of the nodes to run on."
    )
    affinity: JsonObject | None = Field(default=None, description="core/v1 Affinity.")
    tolerations: JsonObjects = Field(default=(), description="core/v1 Toleration.")
    topology_spread_constraints: JsonObjects | None = Field(
        default=None,
        description="core/v1 TopologySpreadConstraint. By default pods are spread over nodes. A "
        "constraint without a labelSelector gets that of the component.",
    )
    priority_class_name: ObjectName | None = Field(
        default=None, description="Name of a PriorityClass."
    )
    probes: ProbesSpec = Field(default=ProbesSpec(), description="Changes to the probes.")


class StorageSpec(SpecSection):
    """A volume for each pod, from a PersistentVolumeClaim."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            {
                "rule": "!has(self.enabled) || !has(oldSelf.enabled) || "
                "self.enabled == oldSelf.enabled",
                "message": "enabled is immutable, because a StatefulSet keeps its volumes",
            },
            {
                "rule": "has(self.storageClass) == has(oldSelf.storageClass) && "
                "(!has(self.storageClass) || self.storageClass == oldSelf.storageClass)",
                "message": "storageClass is immutable, because a StatefulSet keeps its volumes",
            },
            {
                "rule": "!has(self.size) || !has(oldSelf.size) || !isQuantity(self.size) || "
                "!isQuantity(oldSelf.size) || "
                "quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
                "message": "size can only increase, because volumes cannot shrink",
            },
        )
    )

    enabled: bool = Field(
        default=True,
        description="Use a claim. Otherwise the data is in an emptyDir and is deleted with the "
        "pod.",
    )
    size: Size = Field(default="10Gi", description="Size of the volume.")
    storage_class: ObjectName | None = Field(
        default=None, description="StorageClass. By default that of Kubernetes."
    )


class HeadSpec(ComponentSpec):
    """The head: one pod that tracks the processes of the cluster."""

    termination_grace_period_seconds: Seconds = Field(
        default=30, description="Termination grace period of the pod."
    )


class SchedulerSpec(ComponentSpec):
    """The schedulers: they serve HTTP and Flight, and plan and place statements."""

    replicas: int = Field(default=1, ge=0, le=100, description="Number of schedulers.")
    termination_grace_period_seconds: Seconds | None = Field(
        default=None,
        description="Termination grace period of the pods. By default the manifest's "
        "`runtime.shutdown_timeout` plus 30 s.",
    )


class AutoscalingSpec(SpecSection):
    """Autoscaling of executors between `minReplicas` and `maxReplicas`."""

    queued_per_executor: int = Field(
        default=4,
        ge=1,
        le=10_000,
        description="Queued statements per additional executor.",
    )
    memory_percent: int = Field(
        default=80,
        ge=10,
        le=100,
        description="Memory usage of the executors, in percent, above which executors are added.",
    )
    scale_up_window_seconds: Seconds = Field(
        default=30, description="Time that the load must last before executors are added."
    )
    scale_down_window_seconds: Seconds = Field(
        default=300, description="Time that executors must be idle before one is removed."
    )


class ExecutorCacheSpec(StorageSpec):
    """The volume of each executor, with downloads and spilled data. Its loss is harmless."""

    retain: bool = Field(
        default=False,
        description="Keep the claims when executors are scaled down or the cluster is deleted.",
    )


class StateStorageSpec(StorageSpec):
    """The volume of the state, with jobs, their results and accelerated datasets."""

    retain: bool = Field(default=True, description="Keep the claim when the cluster is deleted.")


class ExecutorFlightSpec(SpecSection):
    """Parallel reads: clients fetch parts of answers at the executors."""

    enabled: bool = Field(
        default=False,
        description="Have executors serve Flight. The manifest gets "
        "`runtime.flight.parallel_reads`, unless it has it.",
    )
    service_type: Literal["ClusterIP", "NodePort", "LoadBalancer"] | None = Field(
        default=None,
        description="Create a Service of this type for each executor, named as its pod. None by "
        "default.",
    )
    service_annotations: Annotations = Field(
        default_factory=dict, description="Annotations of these Services."
    )
    advertised_host: (
        Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.()$_-]+$")] | None
    ) = Field(
        default=None,
        description="Host by which clients reach an executor; `$(POD_NAME)` is its name. By "
        "default its name within Kubernetes.",
    )
    advertised_port: int = Field(
        default=50051, ge=1, le=65535, description="Port by which clients reach an executor."
    )


class ExecutorSpec(ComponentSpec):
    """The executors, which run statements."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            {
                "rule": "!has(self.minReplicas) || !has(self.maxReplicas) || "
                "self.minReplicas <= self.maxReplicas",
                "message": "minReplicas must not be greater than maxReplicas",
            },
            {
                "rule": "!has(self.minReplicas) || has(self.maxReplicas)",
                "message": "minReplicas requires maxReplicas, which turns autoscaling on",
            },
            {
                "rule": "!has(self.terminationGracePeriodSeconds) || "
                "!has(self.drainTimeoutSeconds) || "
                "self.terminationGracePeriodSeconds > self.drainTimeoutSeconds",
                "message": "terminationGracePeriodSeconds must be greater than drainTimeoutSeconds",
            },
        )
    )

    replicas: int = Field(
        default=2, ge=0, le=1000, description="Number of executors. Set by `kubectl scale`."
    )
    min_replicas: int | None = Field(
        default=None, ge=1, le=1000, description="Minimum for autoscaling. 1 by default."
    )
    max_replicas: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Maximum for autoscaling, which is off by default.",
    )
    autoscaling: AutoscalingSpec = Field(default=AutoscalingSpec(), description="Autoscaling.")
    cache: ExecutorCacheSpec = Field(
        default=ExecutorCacheSpec(), description="The volume of each executor."
    )
    drain_timeout_seconds: Seconds = Field(
        default=120, description="Time for running statements to finish before an executor stops."
    )
    termination_grace_period_seconds: Seconds | None = Field(
        default=None,
        description="Termination grace period of the pods. By default drainTimeoutSeconds plus "
        "30 s.",
    )
    flight: ExecutorFlightSpec = Field(default=ExecutorFlightSpec(), description="Parallel reads.")


class StateSpec(ComponentSpec):
    """The pod with the managed Redis and result store."""

    storage: StateStorageSpec = Field(
        default=StateStorageSpec(), description="The volume of the pod."
    )
    store_resources: ContainerResources = Field(
        default=ContainerResources(), description="CPU and memory of the result store's container."
    )
    secret_name: ObjectName | None = Field(
        default=None,
        description="A Secret with the password of Redis: the keys `password`, and `valkey.conf` "
        "with the line `requirepass PASSWORD`. Created by default.",
    )
    termination_grace_period_seconds: Seconds = Field(
        default=60, description="Termination grace period of the pod."
    )


def merged(base: dict[str, Any], over: dict[str, object] | None) -> dict[str, object]:
    """Return an object with another one merged into it recursively. None removes a key."""
    result = dict(base)
    for key, value in (over or {}).items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result
