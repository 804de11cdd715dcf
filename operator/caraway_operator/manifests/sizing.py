"""Resources of containers, and how processes divide the memory. All sizes are in MiB."""

from dataclasses import dataclass

from caraway_kube import naming
from caraway_kube.resources import quantities
from caraway_kube.resources.pods import ContainerResources
from caraway_operator.manifests.meta import Object

STORE = "store"
DEFAULTS = {
    naming.HEAD: ("100m", "768Mi"),
    naming.SCHEDULER: ("500m", "1536Mi"),
    naming.EXECUTOR: ("1", "2Gi"),
    naming.STATE: ("100m", "256Mi"),
    STORE: ("100m", "256Mi"),
}
"""Default CPU and memory of each kind of container."""

_LEAST_SHM_MIB = 96
_SHM_PERCENT = {naming.HEAD: 0, naming.SCHEDULER: 10, naming.EXECUTOR: 20}
_OBJECTS_OF_SHM_PERCENT = 90
_PROCESSES_MIB = 384
"""Python, Ray's own processes, and memory that the allocator has not returned."""
_PROCESSES_PERCENT = 5
_LEAST_STATEMENTS_MIB = 64
_REDIS_PERCENT = 60


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """The parts of the memory limit of a container."""

    shm_mib: int
    """Size of /dev/shm, which counts towards the limit."""
    object_store_mib: int
    statements_mib: int
    """Memory for statements. The rows that an executor holds may take the same amount."""


def effective(component: str, resources: ContainerResources) -> ContainerResources:
    """Return the resources with their defaults. Memory always has a limit."""
    cpu, memory = DEFAULTS[component]
    requests, limits = dict(resources.requests), dict(resources.limits)
    limits["memory"] = limits.get("memory") or requests.get("memory") or memory
    requests["memory"] = requests.get("memory") or limits["memory"]
    requests["cpu"] = requests.get("cpu") or limits.get("cpu") or cpu
    return ContainerResources(requests=requests, limits=limits)


def rendered(resources: ContainerResources) -> Object:
    """Return the resources in the form of a container."""
    return {
        "requests": {key: quantities.canonical(v) for key, v in resources.requests.items()},
        "limits": {key: quantities.canonical(v) for key, v in resources.limits.items()},
    }


def cores(resources: ContainerResources) -> int:
    """Return the number of cores that a container may use."""
    return quantities.whole_cores(resources.limits.get("cpu") or resources.requests["cpu"])


def shares(component: str, resources: ContainerResources) -> MemoryShares:
    """Divide the memory of a container that runs a Ray node."""
    limit = quantities.whole_mebibytes(resources.limits["memory"])
    shm = max(_LEAST_SHM_MIB, limit * _SHM_PERCENT[component] // 100)
    # The rows that executors hold for datasets and stages take as much as statements.
    rest = limit - shm - _PROCESSES_MIB - limit * _PROCESSES_PERCENT // 100
    return MemoryShares(
        shm_mib=shm,
        object_store_mib=shm * _OBJECTS_OF_SHM_PERCENT // 100,
        statements_mib=max(_LEAST_STATEMENTS_MIB, rest // 2),
    )


def redis_mib(resources: ContainerResources) -> int:
    """Return Redis's maxmemory. It needs more than that while it rewrites its file."""
    return max(16, quantities.whole_mebibytes(resources.limits["memory"]) * _REDIS_PERCENT // 100)
