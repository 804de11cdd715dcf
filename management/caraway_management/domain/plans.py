"""Plans and the limits of an organization."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from caraway_management.domain import refusals

UNLIMITED = -1
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """The limits of one container."""

    max_cpu: int
    max_memory_gi: int


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an organization. -1 is unlimited where the field allows it."""

    apps: int
    replicas: int
    pods: int
    users: int
    api_rps: int
    request_timeout_secs: int
    sql_query_timeout_secs: int
    sql_concurrent_queries: int
    resources: ResourceLimits | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


PLANS: Mapping[str, Limits] = {
    "community": Limits(UNLIMITED, 1, 1, 1, 100, 60, 60, 4),
    "developer": Limits(UNLIMITED, 2, 10, 5, 1_000, 120, 90, 16),
    "pro": Limits(UNLIMITED, 5, 50, 50, 10_000, 360, 300, 64, ResourceLimits(16, 128)),
    "enterprise": Limits(
        UNLIMITED, 10, UNLIMITED, UNLIMITED, 100_000, 1_860, 1_800, 1_024, ResourceLimits(16, 128)
    ),
}
"""The plans of a new installation. An administrator may change them and add others."""
DEFAULT_PLAN = "community"

# Constants of the platform, whatever the plan.
LEAST_CPU, MOST_CPU = 0.5, 16.0
LEAST_MEMORY_GB, MOST_MEMORY_GB = 1, 128
MOST_STORAGE_GB, STORAGE_ALERT_PERCENT = 256, 90
MOST_ACTIVE_QUERIES = 100
MOST_MESSAGES = 500
MOST_INSTANCES = 50

_MAX_TAILS = {"community": 100, "developer": 500, "enterprise": 10_000}
_MAX_TAIL = 1_000

_BOUNDED = frozenset({"request_timeout_secs", "sql_query_timeout_secs"})
_MOST = 2**31 - 1


def is_name(text: str) -> bool:
    """Return whether the text can be the name of a plan."""
    return _NAME.fullmatch(text) is not None


def max_tail(plan: str) -> int:
    """Return how many lines of the log of an instance a plan shows."""
    return _MAX_TAILS.get(plan, _MAX_TAIL)


def read_limits(values: Mapping[str, object], base: Limits | None = None) -> Limits:
    """Return limits from JSON; with `base`, those that `values` does not name are its own.

    Raises:
        RefusedError: a field is missing, unknown, or out of its range.
    """
    known = {field.name for field in fields(Limits)}
    if wrong := sorted(set(values) - known):
        raise refusals.invalid_field(wrong[0], "unknown limit")
    if missing := sorted(known - set(values) - {"resources"}) if base is None else []:
        raise refusals.invalid_field(missing[0], "is missing")
    checked: dict[str, Any] = {
        name: _value(name, value) for name, value in values.items() if name != "resources"
    }
    if "resources" in values:
        checked["resources"] = _resources(values["resources"])
    return replace(base, **checked) if base else Limits(**checked)


def _value(name: str, value: object) -> int:
    least = 1 if name in _BOUNDED else UNLIMITED
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        hint = "" if name in _BOUNDED else ", or -1 for unlimited"
        raise refusals.invalid_field(
            name, f"must be an integer from {max(least, 0)} to {_MOST}{hint}"
        )
    return value


def _resources(value: object) -> ResourceLimits | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or set(value) != {"max_cpu", "max_memory_gi"}:
        raise refusals.invalid_field("resources", "must be null or have max_cpu and max_memory_gi")
    for name, most in (("max_cpu", int(MOST_CPU)), ("max_memory_gi", MOST_MEMORY_GB)):
        number = value[name]
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
            raise refusals.invalid_field(
                f"resources.{name}", f"must be an integer from 1 to {most}"
            )
    return ResourceLimits(**value)


def is_exceeded(limit: int, number: int) -> bool:
    """Return whether `number` is more than a limit, which may be unlimited."""
    return limit != UNLIMITED and number > limit
