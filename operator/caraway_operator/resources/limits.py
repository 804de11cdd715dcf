"""What a `CarawayLimits` says: an organization's limits, named as the management API names them."""

from typing import Annotated

from pydantic import AfterValidator, Field

from caraway_operator.resources.base import Section, rules

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
"""What schedulers enforce: nothing at all is no limit, but an end."""


class ResourceLimits(Section):
    """What one container may have."""

    max_cpu: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, alias="max_cpu", description="Most CPUs of a container."
    )
    max_memory_gi: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, alias="max_memory_gi", description="Most memory of a container, in Gi."
    )


class LimitsSpec(Section):
    """Limits of an organization. What is not given, null or -1 is unlimited."""

    organization: (
        Annotated[str, Field(max_length=255, pattern=r"^[A-Za-z0-9._-]{1,255}$")] | None
    ) = Field(
        default=None, description="Whose limits; of every cluster in the namespace, if not given."
    )
    apps: _Count = Field(default=UNLIMITED, description="Most clusters of the organization.")
    replicas: _Count = Field(
        default=UNLIMITED, description="Most executors, and most schedulers, of a cluster."
    )
    pods: _Count = Field(
        default=UNLIMITED, description="Most manifests of a cluster, which has one."
    )
    users: _Count = Field(
        default=UNLIMITED, description="Most members; the operator does not look at it."
    )
    api_rps: _Bound = Field(
        default=UNLIMITED, alias="api_rps", description="Most API requests a second."
    )
    request_timeout_secs: _Bound | None = Field(
        default=None, alias="request_timeout_secs", description="Longest request, in seconds."
    )
    sql_query_timeout_secs: _Bound | None = Field(
        default=None, alias="sql_query_timeout_secs", description="Longest SQL query, in seconds."
    )
    sql_concurrent_queries: _Bound = Field(
        default=UNLIMITED, alias="sql_concurrent_queries", description="Most SQL queries at once."
    )
    resources: ResourceLimits | None = Field(
        default=None, description="What one container may have."
    )
