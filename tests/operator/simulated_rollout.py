"""A cluster whose pods Kubernetes replaces as the rollout asks."""

from dataclasses import dataclass, field

from caraway_kube.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.policy import rollout
from caraway_operator.policy.rollout import RolloutStep
from caraway_operator.scheduler_client import ExecutorView
from caraway_operator.states.cluster_state import ClusterState
from caraway_operator.states.pods import PodView, WorkloadProblem, WorkloadView
from caraway_operator.states.progress import ExecutorDrain, ReconcileProgress

NAME = "shop-executor"
CRASH = WorkloadProblem("CrashLoopBackOff", "it ends at once")


@dataclass
class Sim:
    """A cluster whose pods become ready at once, unless their template is bad."""

    desired_replicas: int = 3
    replicas: int = 3
    partition: int = 0
    template: str = "old"
    pods: dict[int, str] = field(default_factory=dict)
    bad: frozenset[str] = frozenset()
    single: dict[str, str] = field(default_factory=dict)
    desired: str = "old"
    drained: set[str] = field(default_factory=set)
    drain: ExecutorDrain | None = None
    step: str = ""
    since: float = 0.0
    now: float = 0.0
    log: list[str] = field(default_factory=list)
    refused_by: str = ""
    """If set, schedulers refuse executors with another template than their own."""

    def __post_init__(self) -> None:
        self.pods = dict.fromkeys(range(self.replicas), self.template)
        self.single = dict.fromkeys((SCHEDULER, HEAD, STATE), "old")

    def state(self) -> ClusterState:
        workloads = {EXECUTOR: self._executors()}
        for component, template in self.single.items():
            ok = template not in self.bad
            workloads[component] = WorkloadView(component, 1, 1, int(ok), 1, True, template)
        pods = [
            PodView(f"{NAME}-{n}", f"u{n}", EXECUTOR, self._works(t), t,
                    problem=CRASH if t in self.bad else None)
            for n, t in self.pods.items()
        ]  # fmt: skip
        pods += [
            PodView(c, c, c, t not in self.bad, problem=CRASH if t in self.bad else None)
            for c, t in self.single.items()
        ]
        views = [
            ExecutorView(f"{NAME}-{n}", is_ready=self._works(t) and f"{NAME}-{n}" not in
                         self.drained, is_draining=f"{NAME}-{n}" in self.drained,
                         is_drained=f"{NAME}-{n}" in self.drained,
                         is_refused=t not in self.bad and not self._works(t))
            for n, t in self.pods.items()
        ]  # fmt: skip
        return ClusterState(
            now=self.now,
            spec=CarawayClusterSpec(),
            workloads=workloads,
            templates=dict.fromkeys((EXECUTOR, SCHEDULER, HEAD, STATE), self.desired),
            pods=pods,
            executors=views,
            progress=ReconcileProgress(drain=self.drain, step=self.step, since=self.since),
            desired_replicas={EXECUTOR: self.desired_replicas},
            is_capable=True,
        )

    def advance(self) -> RolloutStep:
        """Compute one step, carry it out, and let the controllers act."""
        self.now += 1
        found = rollout.next_rollout_step(self.state())
        self.drain, self.step, self.since = found.drain, found.step, found.since
        if found.start_drain:
            self.drained.add(found.start_drain)
        if found.cancel_drain:
            self.drained.discard(found.cancel_drain)
        self.template, self.partition = self.desired, found.partition
        for component in (SCHEDULER, HEAD, STATE):
            if component not in found.hold and self.single[component] != self.desired:
                self.single[component] = self.desired
                self.log.append(component)
        for number in range(self.replicas, self.desired_replicas + found.surge):
            self._replace(number)
        self.replicas = max(self.replicas, self.desired_replicas + found.surge)
        for pod in found.pods_to_delete:
            self._replace(pod.ordinal)
        for number in sorted(self.pods, reverse=True):
            if number >= self.partition and self.pods[number] != self.template:
                self._replace(number)
                break
        return found

    def run(self, turns: int = 60) -> RolloutStep:
        found = RolloutStep()
        for _ in range(turns):
            found = self.advance()
        return found

    def _replace(self, number: int) -> None:
        self.pods[number] = self.template if number >= self.partition else self.pods[number]
        self.drained.discard(f"{NAME}-{number}")
        self.log.append(str(number))

    def _works(self, template: str) -> bool:
        if template in self.bad:
            return False
        return not self.refused_by or template == self.single[SCHEDULER]

    def _executors(self) -> WorkloadView:
        ready = sum(self._works(template) for template in self.pods.values())
        updated = sum(template == self.template for template in self.pods.values())
        return WorkloadView(
            NAME, self.replicas, len(self.pods), ready, updated, True, self.template,
            self.template, self.partition,
        )  # fmt: skip
