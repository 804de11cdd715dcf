"""Determines the desired number of pods: from the spec, or from the load of the schedulers."""

from collections.abc import Sequence
from dataclasses import replace

from caraway_core.concurrency.clocks import SecondsClock
from caraway_kube import naming
from caraway_kube.api.kinds import Object
from caraway_kube.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.manifests import DesiredCluster
from caraway_operator.policy import decisions
from caraway_operator.policy.status import ClusterFacts
from caraway_operator.reconciling.reconcile_cache import ReconcileCache
from caraway_operator.scaling import autoscaling
from caraway_operator.scaling.autoscaling import AutoscalingBounds
from caraway_operator.scheduler_client import (
    SchedulerClient,
    SchedulerClientError,
    SchedulerEndpoint,
)
from caraway_operator.states.progress import ReconcileProgress

EVERY_S = 15.0


class LoadSampler:
    """Asks schedulers for their load if autoscaling is on."""

    def __init__(self, schedulers: SchedulerClient, clock: SecondsClock) -> None:
        self._schedulers = schedulers
        self._clock = clock

    async def desired_replicas(
        self,
        cache: ReconcileCache,
        desired: DesiredCluster,
        objects: Sequence[Object],
        facts: ClusterFacts,
        progress: ReconcileProgress,
    ) -> tuple[dict[str, int], ReconcileProgress]:
        """Return the desired number of pods by component, and the updated progress."""
        components = {
            decisions.component_of(each)
            for each in objects
            if "template" in (each.get("spec") or {})
        }
        replicas = {
            EXECUTOR: desired.executor_count,
            SCHEDULER: desired.scheduler_count,
            HEAD: 0 if desired.spec.stopped else 1,
            STATE: 0 if desired.spec.stopped else 1,
        }
        replicas = {name: count for name, count in replicas.items() if name in components}
        most = desired.spec.executor.max_replicas
        if most is None or desired.spec.stopped:
            cache.loads.clear()
            return replicas, replace(progress, executors=None)
        current = progress.executors if progress.executors is not None else replicas[EXECUTOR]
        current = await self._autoscaled(cache, desired.spec, facts, progress, current, most)
        return {**replicas, EXECUTOR: current}, replace(progress, executors=current)

    async def _autoscaled(
        self,
        cache: ReconcileCache,
        spec: CarawayClusterSpec,
        facts: ClusterFacts,
        progress: ReconcileProgress,
        current: int,
        most: int,
    ) -> int:
        given = spec.executor.autoscaling
        bounds = AutoscalingBounds(
            least=spec.executor.min_replicas or 1,
            most=most,
            queued_per_executor=given.queued_per_executor,
            memory_share=given.memory_percent / 100,
            up_window_s=given.scale_up_window_seconds,
            down_window_s=given.scale_down_window_seconds,
        )
        now = self._clock()
        if progress.drain is not None or progress.step:
            # The load is not representative while executors start and stop.
            cache.loads.clear()
        elif samples := cache.loads.samples:
            if now - samples[-1].at >= EVERY_S - 1:
                await self._sample_load(cache, facts, current, bounds)
        else:
            await self._sample_load(cache, facts, current, bounds)
        return autoscaling.decide_replicas(cache.loads.samples, current, bounds, now).replicas

    async def _sample_load(
        self, cache: ReconcileCache, facts: ClusterFacts, current: int, bounds: AutoscalingBounds
    ) -> None:
        token = cache.referenced.token
        endpoints = [
            SchedulerEndpoint(f"http://{_bracketed(pod.address)}:{naming.METRICS_PORT}", token)
            for pod in facts.observed.pods
            if pod.component == SCHEDULER and pod.is_ready and pod.address
        ]
        try:
            loads = [await self._schedulers.load(endpoint) for endpoint in endpoints]
        except SchedulerClientError:
            return
        if loads:
            window_s = max(bounds.up_window_s, bounds.down_window_s)
            sample = autoscaling.sample_load(loads, current, bounds, self._clock())
            cache.loads.add(sample, window_s)


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
