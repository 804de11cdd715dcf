"""What the operator says of a `CarawayCluster`."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from caraway_operator.resources.base import Object, Section, as_tuple

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


class Condition(Section):
    """One thing that is so, or is not."""

    type: Annotated[str, Field(max_length=316)] = Field(description="What it is about.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it is so.")
    reason: Annotated[str, Field(max_length=1024)] = Field(description="Why, in one word.")
    message: Annotated[str, Field(max_length=32768)] = Field(description="Why, for people.")
    observed_generation: int | None = Field(
        default=None, description="Of which spec this was said."
    )
    last_transition_time: Annotated[_Time, Field(json_schema_extra={"format": "date-time"})] = (
        Field(description="When status changed.")
    )


class Replicas(Section):
    """How many pods of a component there are."""

    wanted: int = Field(default=0, description="How many there shall be.")
    current: int = Field(default=0, description="How many there are.")
    ready: int = Field(default=0, description="How many of them are ready.")
    updated: int = Field(default=0, description="How many of them are of the newest spec.")


class Endpoints(Section):
    """Where users reach the cluster, from within Kubernetes."""

    http: str | None = Field(default=None, description="URL of the HTTP API.")
    flight: str | None = Field(default=None, description="Location of Arrow Flight SQL.")
    metrics: str | None = Field(default=None, description="URL of metrics and readiness.")


class ClusterStatus(Section):
    """How a cluster is."""

    observed_generation: int | None = Field(default=None, description="Which spec this is about.")
    phase: Phase | None = Field(default=None, description="How it is, in one word.")
    message: str | None = Field(default=None, description="Why it is so, for people.")
    replicas: int | None = Field(
        default=None, description="Executors that there are, for `kubectl scale`."
    )
    selector: str | None = Field(
        default=None, description="Labels of executors, for `kubectl scale`."
    )
    executors_ready: str | None = Field(
        default=None, description="Executors that are ready, as `2/3`."
    )
    schedulers_ready: str | None = Field(
        default=None, description="Schedulers that are ready, as `1/1`."
    )
    executor: Replicas | None = Field(default=None, description="Executors.")
    scheduler: Replicas | None = Field(default=None, description="Schedulers.")
    head: Replicas | None = Field(default=None, description="The head.")
    state: Replicas | None = Field(default=None, description="The state's pod.")
    image: str | None = Field(default=None, description="Image that all pods run.")
    version: str | None = Field(default=None, description="Version that all pods run.")
    endpoints: Endpoints | None = Field(default=None, description="Where users reach the cluster.")
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
    ] = Field(default=(), description="What is so, and what is not.")
    progress: Object | None = Field(
        default=None,
        description="What the operator is in the middle of; its own, and of no fixed form.",
    )
