"""A cluster as it shall be: everything that its objects are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from caraway_operator.resources.cluster import ClusterSpec
from caraway_operator.resources.declared import Declared
from caraway_operator.resources.limits import LimitsSpec

SERVICE_MONITOR, POD_MONITOR = "ServiceMonitor", "PodMonitor"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One cluster. `spec` is clamped already, and `declared` is checked.

    `executors` and `partition` are what the operator has decided on its way to the spec: how many
    executors there shall be now, and from which ordinal on they run the newest image. `secrets`
    are checksums of the Secrets that pods read, by name: a new one replaces the pods. `version` is
    that of the operator, and `kinds` the optional kinds that the API server knows.
    """

    name: str
    namespace: str
    spec: ClusterSpec
    declared: Declared
    uid: str = ""
    generation: int = 0
    version: str = "0.1.0"
    executors: int | None = None
    partition: int = 0
    limits: LimitsSpec | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    manager: str = "caraway-operator"
    """Who says that it manages the objects; the chart without an operator is called Helm."""

    @property
    def executor_count(self) -> int:
        """How many executors there shall be."""
        if self.spec.stopped:
            return 0
        return self.spec.executor.replicas if self.executors is None else self.executors

    @property
    def scheduler_count(self) -> int:
        """How many schedulers there shall be."""
        return 0 if self.spec.stopped else self.spec.scheduler.replicas

    @property
    def makes_redis(self) -> bool:
        """Whether the cluster's own pod runs a Redis."""
        return self.spec.redis is None

    @property
    def makes_store(self) -> bool:
        """Whether the cluster's own pod keeps answers."""
        runtime = self.declared.content.get("runtime") or {}
        is_given = (runtime.get("scheduler") or {}).get("state_location") is not None
        return self.spec.result_store is None and not is_given
