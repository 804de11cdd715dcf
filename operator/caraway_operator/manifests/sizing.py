"""What a container gets, and how its memory is shared out. All sizes in MiB, all exact."""

from dataclasses import dataclass

from caraway_operator import naming
from caraway_operator.manifests.meta import Object
from caraway_operator.resources import quantities
from caraway_operator.resources.pods import Resources

STORE = "store"
DEFAULTS = {
    naming.HEAD: ("100m", "768Mi"),
    naming.SCHEDULER: ("500m", "1536Mi"),
    naming.EXECUTOR: ("1", "2Gi"),
    naming.STATE: ("100m", "256Mi"),
    STORE: ("100m", "256Mi"),
}
"""CPU and memory of each kind of container, where the spec does not say."""

_LEAST_SHM_MIB = 96
_SHM_PERCENT = {naming.HEAD: 0, naming.SCHEDULER: 10, naming.EXECUTOR: 20}
_OBJECTS_OF_SHM_PERCENT = 90
_PROCESSES_MIB = 384
"""Python, Ray's own processes and what the allocator has not given back."""
_PROCESSES_PERCENT = 5
_LEAST_STATEMENTS_MIB = 64
_REDIS_PERCENT = 60


@dataclass(frozen=True, slots=True)
class Shares:
    """How the memory limit of a container is shared out."""

    shm_mib: int
    """Size of /dev/shm, which counts in the limit."""
    object_store_mib: int
    statements_mib: int
    """Of an executor, for statements; the rows that it holds may take as much again."""


def effective(component: str, resources: Resources) -> Resources:
    """Return the resources with defaults in place; memory always has a limit."""
    cpu, memory = DEFAULTS[component]
    requests, limits = dict(resources.requests), dict(resources.limits)
    limits["memory"] = limits.get("memory") or requests.get("memory") or memory
    requests["memory"] = requests.get("memory") or limits["memory"]
    requests["cpu"] = requests.get("cpu") or limits.get("cpu") or cpu
    return Resources(requests=requests, limits=limits)


def rendered(resources: Resources) -> Object:
    """Return resources as a container has them."""
    return {
        "requests": {key: quantities.canonical(v) for key, v in resources.requests.items()},
        "limits": {key: quantities.canonical(v) for key, v in resources.limits.items()},
    }


def cores(resources: Resources) -> int:
    """Return how many cores a container may count on."""
    return quantities.whole_cores(resources.limits.get("cpu") or resources.requests["cpu"])


def shares(component: str, resources: Resources) -> Shares:
    """Share out the memory of a container that runs a Ray node."""
    limit = quantities.whole_mebibytes(resources.limits["memory"])
    shm = max(_LEAST_SHM_MIB, limit * _SHM_PERCENT[component] // 100)
    # What executors hold for datasets and stages may take as much as statements do.
    rest = limit - shm - _PROCESSES_MIB - limit * _PROCESSES_PERCENT // 100
    return Shares(
        shm_mib=shm,
        object_store_mib=shm * _OBJECTS_OF_SHM_PERCENT // 100,
        statements_mib=max(_LEAST_STATEMENTS_MIB, rest // 2),
    )


def redis_mib(resources: Resources) -> int:
    """Return how much a Redis may keep: while it writes its file anew it needs more."""
    return max(16, quantities.whole_mebibytes(resources.limits["memory"]) * _REDIS_PERCENT // 100)
