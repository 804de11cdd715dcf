"""The spec of a `CarawayLimits`. Its fields have the names of the management API."""

from typing import Annotated

from pydantic import AfterValidator, Field

from caraway_kube.resources.base import SpecSection, rules

UNLIMITED = -1
_Count = Annotated[int, Field(ge=UNLIMITED, le=2_000_000_000)]


def _not_zero(value: int) -> int:
    if value == 0:
        raise ValueError("must be 1 or more, or -1 for no limit")
    return value


_Bound = Annotated[
    int,
    Field(
        ge=UNLIMITED,
        le=2_000_000_000,
        json_schema_extra=rules(
            {"rule": "self != 0", "message": "must be 1 or more, or -1 for no limit"}
        ),
    ),
    AfterValidator(_not_zero),
]
"""A limit that schedulers enforce. Zero would stop all work."""


class ResourceLimits(SpecSection):
    """Limits of one container."""

    max_cpu: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, alias="max_cpu", description="Maximum CPUs of a container."
    )
    max_memory_gi: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, alias="max_memory_gi", description="Maximum memory of a container, in Gi."
    )


class CarawayLimitsSpec(SpecSection):
    """Limits of an organization. A value that is absent, null or -1 is unlimited."""

    organization: (
        Annotated[str, Field(max_length=255, pattern=r"^[A-Za-z0-9._-]{1,255}$")] | None
    ) = Field(
        default=None,
        description="Organization that the limits apply to. By default every cluster in the "
        "namespace.",
    )
    apps: _Count = Field(default=UNLIMITED, description="Maximum clusters of the organization.")
    replicas: _Count = Field(
        default=UNLIMITED, description="Maximum executors, and maximum schedulers, of a cluster."
    )
    pods: _Count = Field(
        default=UNLIMITED, description="Maximum manifests of a cluster, which has one."
    )
    users: _Count = Field(
        default=UNLIMITED, description="Maximum members. Not used by the operator."
    )
    api_rps: _Bound = Field(
        default=UNLIMITED, alias="api_rps", description="Maximum API requests per second."
    )
    request_timeout_secs: _Bound | None = Field(
        default=None,
        alias="request_timeout_secs",
        description="Maximum duration of a request, in seconds.",
    )
    sql_query_timeout_secs: _Bound | None = Field(
        default=None,
        alias="sql_query_timeout_secs",
        description="Maximum duration of an SQL query, in seconds.",
    )
    sql_concurrent_queries: _Bound = Field(
        default=UNLIMITED,
        alias="sql_concurrent_queries",
        description="Maximum concurrent SQL queries.",
    )
    resources: ResourceLimits | None = Field(default=None, description="Limits of one container.")
