"""The status of a `CarawayCluster`."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from caraway_kube.resources.base import JsonObject, SpecSection, as_tuple

Phase = Literal[
    "Pending",
    "Creating",
    "Ready",
    "Degraded",
    "RollingOut",
    "Scaling",
    "Paused",
    "Stopped",
    "Failed",
    "Deleting",
]
_Time = Annotated[str, Field(max_length=64)]


class Condition(SpecSection):
    """A condition of the cluster."""

    type: Annotated[str, Field(max_length=316)] = Field(description="Type of the condition.")
    status: Literal["True", "False", "Unknown"] = Field(description="Status of the condition.")
    reason: Annotated[str, Field(max_length=1024)] = Field(description="Reason in CamelCase.")
    message: Annotated[str, Field(max_length=32768)] = Field(description="Human-readable message.")
    observed_generation: int | None = Field(
        default=None, description="Generation that the condition was set for."
    )
    last_transition_time: Annotated[_Time, Field(json_schema_extra={"format": "date-time"})] = (
        Field(description="When the status last changed.")
    )


class Replicas(SpecSection):
    """Numbers of pods of a component."""

    wanted: int = Field(default=0, description="Desired number of pods.")
    current: int = Field(default=0, description="Current number of pods.")
    ready: int = Field(default=0, description="Number of ready pods.")
    updated: int = Field(default=0, description="Number of pods with the newest template.")


class Endpoints(SpecSection):
    """Endpoints of the cluster within Kubernetes."""

    http: str | None = Field(default=None, description="URL of the HTTP API.")
    flight: str | None = Field(default=None, description="Location of Arrow Flight SQL.")
    metrics: str | None = Field(default=None, description="URL of metrics and readiness.")


class CarawayClusterStatus(SpecSection):
    """The status of a cluster."""

    observed_generation: int | None = Field(default=None, description="Generation last reconciled.")
    phase: Phase | None = Field(default=None, description="Phase of the cluster.")
    message: str | None = Field(
        default=None, description="Human-readable explanation of the phase."
    )
    replicas: int | None = Field(
        default=None, description="Current number of executors, for `kubectl scale`."
    )
    selector: str | None = Field(
        default=None, description="Label selector of executors, for `kubectl scale`."
    )
    executors_ready: str | None = Field(
        default=None, description="Ready and desired executors, such as `2/3`."
    )
    schedulers_ready: str | None = Field(
        default=None, description="Ready and desired schedulers, such as `1/1`."
    )
    executor: Replicas | None = Field(default=None, description="Pods of the executors.")
    scheduler: Replicas | None = Field(default=None, description="Pods of the schedulers.")
    head: Replicas | None = Field(default=None, description="Pods of the head.")
    state: Replicas | None = Field(default=None, description="Pods of the state.")
    image: str | None = Field(default=None, description="Image of all pods.")
    version: str | None = Field(default=None, description="Version of all pods.")
    endpoints: Endpoints | None = Field(default=None, description="Endpoints of the cluster.")
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            max_length=32,
            json_schema_extra={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        ),
        BeforeValidator(as_tuple),
    ] = Field(default=(), description="Conditions of the cluster.")
    progress: JsonObject | None = Field(
        default=None,
        description="Progress of the operator. Internal, without a stable format.",
    )
