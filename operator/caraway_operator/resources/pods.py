"""What can be said of the pods of each component."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from caraway_operator.resources.base import (
    Annotations,
    Labels,
    Object,
    ObjectName,
    Objects,
    Quantity,
    Seconds,
    Section,
    Size,
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


class Image(Section):
    """The image of all pods, unless a component names one of its own."""

    repository: Repository = Field(default="caraway", description="Registry and name of the image.")
    tag: Tag | None = Field(default=None, description="Tag; that of the operator, if not given.")
    digest: Digest | None = Field(
        default=None, description="Digest, which is taken instead of the tag."
    )
    pull_policy: PullPolicy = Field(default="IfNotPresent", description="When the image is pulled.")
    pull_secrets: Names = Field(
        default=(), description="Names of Secrets with logins of registries."
    )


class ComponentImage(Section):
    """Where the image of one component differs."""

    repository: Repository | None = Field(
        default=None, description="Registry and name of the image."
    )
    tag: Tag | None = Field(default=None, description="Tag.")
    digest: Digest | None = Field(
        default=None, description="Digest, which is taken instead of the tag."
    )


class Resources(Section):
    """What a container asks for and may use; what is not said has a default.

    Memory needs a limit: shared memory and the engine's budget are shares of it. Without one it
    is what is requested.
    """

    requests: Quantities = Field(
        default_factory=dict, description="What is reserved: cpu, memory, ephemeral-storage."
    )
    limits: Quantities = Field(
        default_factory=dict, description="What may be used; cpu is unlimited by default."
    )


class Probes(Section):
    """Fields of probes that differ from what the operator sets, each merged over it."""

    startup: Object | None = Field(default=None, description="Merged over the startup probe.")
    readiness: Object | None = Field(default=None, description="Merged over the readiness probe.")
    liveness: Object | None = Field(default=None, description="Merged over the liveness probe.")


class Pods(Section):
    """What every component has."""

    image: ComponentImage = Field(
        default=ComponentImage(), description="Where the image differs from `spec.image`."
    )
    resources: Resources = Field(
        default=Resources(), description="CPU and memory of the container."
    )
    env: Objects = Field(default=(), description="Further environment variables (core/v1 EnvVar).")
    env_from: Objects = Field(
        default=(), description="Sources of variables (core/v1 EnvFromSource)."
    )
    volumes: Objects = Field(default=(), description="Further volumes (core/v1 Volume).")
    volume_mounts: Objects = Field(
        default=(), description="Where they are mounted (core/v1 VolumeMount)."
    )
    pod_labels: Labels = Field(default_factory=dict, description="Further labels of the pods.")
    pod_annotations: Annotations = Field(
        default_factory=dict, description="Further annotations of the pods."
    )
    node_selector: Labels = Field(
        default_factory=dict, description="Labels of the nodes that may be taken."
    )
    affinity: Object | None = Field(default=None, description="core/v1 Affinity.")
    tolerations: Objects = Field(default=(), description="core/v1 Toleration.")
    topology_spread_constraints: Objects | None = Field(
        default=None,
        description="core/v1 TopologySpreadConstraint; pods are spread over nodes, if not given. "
        "A constraint without a labelSelector gets that of the component.",
    )
    priority_class_name: ObjectName | None = Field(default=None, description="A PriorityClass.")
    probes: Probes = Field(default=Probes(), description="Changes to the probes.")


class Storage(Section):
    """A volume for each pod, from a claim of its own."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            {
                "rule": "!has(self.enabled) || !has(oldSelf.enabled) || "
                "self.enabled == oldSelf.enabled",
                "message": "enabled cannot be changed: a StatefulSet keeps its volumes",
            },
            {
                "rule": "has(self.storageClass) == has(oldSelf.storageClass) && "
                "(!has(self.storageClass) || self.storageClass == oldSelf.storageClass)",
                "message": "storageClass cannot be changed: a StatefulSet keeps its volumes",
            },
            {
                "rule": "!has(self.size) || !has(oldSelf.size) || !isQuantity(self.size) || "
                "!isQuantity(oldSelf.size) || "
                "quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
                "message": "size can grow, but a volume cannot be made smaller",
            },
        )
    )

    enabled: bool = Field(
        default=True,
        description="Without a claim the data are in an emptyDir, and go with the pod.",
    )
    size: Size = Field(default="10Gi", description="Size of the volume.")
    storage_class: ObjectName | None = Field(
        default=None, description="Its StorageClass; the default one, if not given."
    )


class Head(Pods):
    """The head: one pod that keeps the list of the cluster's processes."""

    termination_grace_period_seconds: Seconds = Field(
        default=30, description="How long the pod may take to stop."
    )


class Scheduler(Pods):
    """The schedulers: they serve HTTP and Flight, plan and place."""

    replicas: int = Field(default=1, ge=0, le=100, description="How many there are.")
    termination_grace_period_seconds: Seconds | None = Field(
        default=None,
        description="How long a pod may take to stop; the manifest's `runtime.shutdown_timeout` "
        "and 30 s, if not given.",
    )


class Autoscaling(Section):
    """When the number of executors changes, between `minReplicas` and `maxReplicas`."""

    queued_per_executor: int = Field(
        default=4,
        ge=1,
        le=10_000,
        description="Waiting statements for each executor that ask for more.",
    )
    memory_percent: int = Field(
        default=80,
        ge=10,
        le=100,
        description="Share of the executors' memory in use that asks for more.",
    )
    scale_up_window_seconds: Seconds = Field(
        default=30, description="How long the need must last before executors are added."
    )
    scale_down_window_seconds: Seconds = Field(
        default=300, description="How long they must be idle before one is removed."
    )


class ExecutorCache(Storage):
    """The volume of each executor, with downloads and spilled data: nothing that must be kept."""

    retain: bool = Field(
        default=False,
        description="Keep the claims of executors that were scaled in, and of the cluster.",
    )


class StateStorage(Storage):
    """The volume of the state: jobs, their answers, accelerated datasets."""

    retain: bool = Field(default=True, description="Keep the claim when the cluster is deleted.")


class Executor(Pods):
    """The executors: they run the work."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            {
                "rule": "!has(self.minReplicas) || !has(self.maxReplicas) || "
                "self.minReplicas <= self.maxReplicas",
                "message": "minReplicas must not be more than maxReplicas",
            },
            {
                "rule": "!has(self.minReplicas) || has(self.maxReplicas)",
                "message": "minReplicas is for autoscaling, which needs maxReplicas as well",
            },
            {
                "rule": "!has(self.terminationGracePeriodSeconds) || "
                "!has(self.drainTimeoutSeconds) || "
                "self.terminationGracePeriodSeconds > self.drainTimeoutSeconds",
                "message": "terminationGracePeriodSeconds must be more than drainTimeoutSeconds",
            },
        )
    )

    replicas: int = Field(
        default=2, ge=0, le=1000, description="How many there are; `kubectl scale` changes it."
    )
    min_replicas: int | None = Field(
        default=None, ge=1, le=1000, description="Fewest that autoscaling leaves; 1, if not given."
    )
    max_replicas: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Most that autoscaling makes; it is off, if not given.",
    )
    autoscaling: Autoscaling = Field(default=Autoscaling(), description="When autoscaling acts.")
    cache: ExecutorCache = Field(
        default=ExecutorCache(), description="The volume of each executor."
    )
    drain_timeout_seconds: Seconds = Field(
        default=120, description="How long statements under way may take once an executor is to go."
    )
    termination_grace_period_seconds: Seconds | None = Field(
        default=None,
        description="How long a pod may take to stop; drainTimeoutSeconds and 30 s, if not given.",
    )


class State(Pods):
    """The pod with the cluster's Redis and its store of answers, if the operator makes them."""

    storage: StateStorage = Field(default=StateStorage(), description="Its volume.")
    store_resources: Resources = Field(
        default=Resources(), description="CPU and memory of the container of the store."
    )
    secret_name: ObjectName | None = Field(
        default=None,
        description="A Secret with the Redis' password: `password`, and `valkey.conf` with the "
        "line `requirepass PASSWORD`. One is made, if not given.",
    )
    termination_grace_period_seconds: Seconds = Field(
        default=60, description="How long the pod may take to stop."
    )


def merged(base: dict[str, Any], over: dict[str, Any] | None) -> dict[str, Any]:
    """Return an object with another merged over it, deeply; None removes a key."""
    result = dict(base)
    for key, value in (over or {}).items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


__all__ = [
    "Autoscaling",
    "ComponentImage",
    "Executor",
    "ExecutorCache",
    "Head",
    "Image",
    "Pods",
    "Probes",
    "Resources",
    "Scheduler",
    "State",
    "StateStorage",
    "Storage",
    "merged",
]
