"""The desired state of a cluster, from which its objects are built."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from caraway_core.releases.version import __version__
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_kube.resources.limits import CarawayLimitsSpec
from caraway_kube.resources.manifest_checks import ClusterManifest

SERVICE_MONITOR, POD_MONITOR = "ServiceMonitor", "PodMonitor"


@dataclass(frozen=True, slots=True)
class DesiredCluster:
    """A cluster. `spec` is clamped to the limits, and `manifest` is checked.

    `executors` and `partition` are intermediate values that the operator has decided on: the
    current number of executors, and the first ordinal with the new image. `secrets` are checksums
    of the Secrets that pods read, by name; a change replaces the pods. `version` is that of the
    operator. `kinds` are the optional kinds that the API server serves.
    """

    name: str
    namespace: str
    spec: CarawayClusterSpec
    manifest: ClusterManifest
    uid: str = ""
    generation: int = 0
    version: str = __version__
    executors: int | None = None
    partition: int = 0
    limits: CarawayLimitsSpec | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    manager: str = "caraway-operator"
    """The value of the managed-by label. The chart's standalone mode uses `Helm`."""

    @property
    def executor_count(self) -> int:
        """The desired number of executors."""
        if self.spec.stopped:
            return 0
        return self.spec.executor.replicas if self.executors is None else self.executors

    @property
    def scheduler_count(self) -> int:
        """The desired number of schedulers."""
        return 0 if self.spec.stopped else self.spec.scheduler.replicas

    @property
    def makes_redis(self) -> bool:
        """True if the state's pod runs Redis."""
        return self.spec.redis is None

    @property
    def makes_store(self) -> bool:
        """True if the state's pod runs the result store."""
        runtime = self.manifest.content.get("runtime") or {}
        is_given = (runtime.get("scheduler") or {}).get("state_location") is not None
        return self.spec.result_store is None and not is_given
