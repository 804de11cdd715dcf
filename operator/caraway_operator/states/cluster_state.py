"""The desired and the observed state of a cluster at one moment. Input of all decisions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from caraway_kube.naming import EXECUTOR, SCHEDULER
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.scheduler_client import ExecutorView
from caraway_operator.states.pods import PodView, WorkloadView
from caraway_operator.states.progress import ReconcileProgress


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster at one moment. `workloads`, `templates` and `desired_replicas` are by component."""

    now: float
    spec: CarawayClusterSpec
    workloads: Mapping[str, WorkloadView]
    """The observed workloads."""
    pods: Sequence[PodView]
    templates: Mapping[str, str]
    """Hashes of the desired pod templates."""
    desired_replicas: Mapping[str, int]
    progress: ReconcileProgress
    executors: Collection[ExecutorView] | None = None
    """The executors as a scheduler sees them; None if no scheduler answers."""
    is_capable: bool = False
    """Enough executors are ready to replace another one."""
    refusal: str = ""
    """Why schedulers refuse the operator; '' if they do not, or none was asked."""
    can_surge: bool = True
    """The limits allow one executor more than desired."""

    @property
    def desired_executors(self) -> int:
        """The desired number of executors."""
        return self.desired_replicas[EXECUTOR]

    @property
    def has_schedulers(self) -> bool:
        """True if any scheduler pod exists."""
        workload = self.workloads.get(SCHEDULER)
        return workload is not None and workload.present > 0

    def is_outdated(self, component: str) -> bool:
        """Return whether a workload exists whose template is not the desired one."""
        workload = self.workloads.get(component)
        return workload is not None and workload.template != self.desired_template(component)

    def desired_template(self, component: str) -> str:
        """Return the hash of the desired template; the applied one if none is desired."""
        workload = self.workloads.get(component)
        return self.templates.get(component, workload.template if workload else "")
