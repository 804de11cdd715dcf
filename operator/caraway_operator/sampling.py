"""How many pods there shall be: what the spec says, or what the load of the schedulers asks for."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from caraway_operator import deciding, naming
from caraway_operator.kube.kinds import Object
from caraway_operator.manifests import Wanted
from caraway_operator.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.progress import Progress
from caraway_operator.remembering import Remembered
from caraway_operator.resources.cluster import ClusterSpec
from caraway_operator.scaling import autoscaling
from caraway_operator.scaling.autoscaling import Bounds
from caraway_operator.scheduler_link import Link, LinkError, Target
from caraway_operator.status import Facts

EVERY_S = 15.0


class Sampler:
    """Asks schedulers how busy they are, where that decides the number of executors."""

    def __init__(self, link: Link, clock: Callable[[], float]) -> None:
        self._link = link
        self._clock = clock

    async def wish(
        self,
        kept: Remembered,
        wanted: Wanted,
        objects: Sequence[Object],
        facts: Facts,
        doing: Progress,
    ) -> tuple[dict[str, int], Progress]:
        """Return how many pods of each component there shall be."""
        components = {deciding.component_of(each) for each in objects if "template" in (
            each.get("spec") or {}
        )}  # fmt: skip
        wish = {
            EXECUTOR: wanted.executor_count,
            SCHEDULER: wanted.scheduler_count,
            HEAD: 0 if wanted.spec.stopped else 1,
            STATE: 0 if wanted.spec.stopped else 1,
        }
        wish = {component: count for component, count in wish.items() if component in components}
        most = wanted.spec.executor.max_replicas
        if most is None or wanted.spec.stopped:
            kept.history.clear()
            return wish, replace(doing, executors=None)
        current = doing.executors if doing.executors is not None else wish[EXECUTOR]
        current = await self._autoscaled(kept, wanted.spec, facts, doing, current, most)
        return {**wish, EXECUTOR: current}, replace(doing, executors=current)

    async def _autoscaled(
        self,
        kept: Remembered,
        spec: ClusterSpec,
        facts: Facts,
        doing: Progress,
        current: int,
        most: int,
    ) -> int:
        given = spec.executor.autoscaling
        bounds = Bounds(
            least=spec.executor.min_replicas or 1,
            most=most,
            queued_per_executor=given.queued_per_executor,
            memory_share=given.memory_percent / 100,
            up_window_s=given.scale_up_window_seconds,
            down_window_s=given.scale_down_window_seconds,
        )
        now = self._clock()
        if doing.drain is not None or doing.step:
            # What is measured while executors come and go says nothing.
            kept.history.clear()
        elif samples := kept.history.samples:
            if now - samples[-1].at >= EVERY_S - 1:
                await self._sample(kept, facts, current, bounds)
        else:
            await self._sample(kept, facts, current, bounds)
        return autoscaling.decide(kept.history.samples, current, bounds, now).replicas

    async def _sample(self, kept: Remembered, facts: Facts, current: int, bounds: Bounds) -> None:
        targets = [
            Target(f"http://{_bracketed(pod.address)}:{naming.METRICS_PORT}", kept.sources.token)
            for pod in facts.pods
            if pod.component == SCHEDULER and pod.is_ready and pod.address
        ]
        try:
            loads = [await self._link.load(target) for target in targets]
        except LinkError:
            return
        if loads:
            window_s = max(bounds.up_window_s, bounds.down_window_s)
            found = autoscaling.sample(loads, current, bounds, self._clock())
            kept.history.add(found, window_s)


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
