"""One look at one cluster: read what is wanted and what there is, decide, write, say how it is.

Everything that is decided is decided by pure modules; this one asks and does.
"""

import datetime as dt
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from caraway_operator import (
    deciding,
    growing,
    happenings,
    naming,
    observing,
    progress,
    sampling,
    status,
)
from caraway_operator.deciding import Decided
from caraway_operator.known import Key, Known, key
from caraway_operator.kube import errors, planning
from caraway_operator.kube.client import Kube
from caraway_operator.kube.events import Happening, Recorder
from caraway_operator.kube.kinds import CLUSTER, POD, SERVICE, VOLUME_CLAIM, Object
from caraway_operator.kube.objects import Objects
from caraway_operator.kube.planning import Owner
from caraway_operator.manifests import Wanted
from caraway_operator.naming import EXECUTOR, SCHEDULER
from caraway_operator.progress import Progress
from caraway_operator.reading import FRESH_S, Read, Reader
from caraway_operator.remembering import Remembered
from caraway_operator.resources.cluster import ClusterSpec
from caraway_operator.sampling import Sampler
from caraway_operator.scheduler_link import ExecutorView, Link, LinkError, Target
from caraway_operator.status import Facts
from caraway_operator.writing import Written, write

logger = logging.getLogger(__name__)
RESYNC_S = 60.0
_SOON_S = 2.0
_ROLLING_S = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """When to look again, and what was written."""

    again_s: float
    written: Written = field(default_factory=Written)
    failed: bool = False


class Reconciler:
    """Looks at clusters, one at a time each."""

    def __init__(
        self,
        kube: Kube,
        link: Link,
        objects: Objects,
        known: Known,
        recorder: Recorder,
        clock: Callable[[], float],
        version: str,
    ) -> None:
        self._kube = kube
        self._link = link
        self._objects = objects
        self._known = known
        self._recorder = recorder
        self._clock = clock
        self._reader = Reader(kube, known, clock, version)
        self._sampler = Sampler(link, clock)
        self._remembered: dict[Key, Remembered] = {}
        self.target: Callable[[str, str, str], Target] = service_of

    @property
    def kinds(self) -> frozenset[str]:
        """Optional kinds that the API has."""
        return self._reader.kinds

    @kinds.setter
    def kinds(self, kinds: frozenset[str]) -> None:
        self._reader.kinds = kinds

    def forget(self, which: Key) -> None:
        """Drop what was kept of a cluster that is gone."""
        self._remembered.pop(which, None)

    async def reconcile(self, cluster: Object) -> Outcome:
        """Bring a cluster one step nearer to what is wanted.

        Raises:
            KubeError: the API did not let the cluster be read, or told how it is.
        """
        kept = self._remembered.setdefault(key(cluster), Remembered())
        metadata = cluster["metadata"]
        base = Facts(metadata["name"], metadata["namespace"], metadata.get("generation", 0))
        doing = progress.read(self._status(cluster, kept).get("progress"))
        if metadata.get("deletionTimestamp"):
            # Kubernetes removes what the cluster owns; nothing is made any more.
            return await self._say(cluster, kept, replace(base, is_leaving=True), doing, RESYNC_S)
        base = observing.as_told(observing.observed(self._objects, base))
        try:
            read = await self._reader.read(cluster, kept, base)
        except errors.KubeError as error:
            facts = replace(base, failures=[error.message], is_taken=False,
                            was_ready=doing.was_ready, full=doing.full)  # fmt: skip
            await self._say(cluster, kept, facts, doing, RESYNC_S)
            return Outcome(_SOON_S, failed=True)
        if read.wanted is None:
            facts = replace(read.facts, was_ready=doing.was_ready, full=doing.full)
            for problem in (*facts.problems, *facts.refused):
                await self._recorder.tell(
                    cluster, Happening("SpecRefused", problem, "Check", "Warning")
                )
            return await self._say(cluster, kept, facts, doing, FRESH_S)
        facts = replace(read.facts, was_ready=doing.was_ready, full=doing.full)
        if read.wanted.spec.paused:
            return await self._say(cluster, kept, replace(facts, is_paused=True), doing, RESYNC_S)
        return await self._act(cluster, kept, read, facts, doing)

    async def _act(
        self, cluster: Object, kept: Remembered, read: Read, facts: Facts, doing: Progress
    ) -> Outcome:
        wanted = read.wanted
        assert wanted is not None
        objects = self._reader.built(kept, wanted)
        scene = await self._scene(kept, wanted, objects, facts, doing, read.has_surge_room)
        decided = deciding.decide(scene)
        decided = await self._undone(kept, facts, decided, doing)
        settled, hold = deciding.settle(objects, decided)
        live = observing.written(self._objects, facts)
        plan = planning.plan(settled, live, _owner(cluster), kept.memory.seen, hold)
        facts = _with(facts, scene, decided)
        if decided.begin and decided.progress.drain != doing.drain:
            # Kept before anything is done: whoever comes after this process can take it back.
            await self._say(cluster, kept, facts, decided.progress, 0)
        written = await write(self._kube, self._objects, kept.memory, plan, self._clock())
        written = replace(written, created=(*read.made, *written.created))
        for happening in happenings.done(written):
            await self._recorder.tell(cluster, happening)
        failures = [*written.failures, *kept.sources.missing]
        failures += await self._grow(facts, settled)
        failures += await self._drain_and_evict(kept, facts, decided)
        facts = replace(facts, failures=failures, unreachable=_unreachable(written))
        facts = observing.observed(self._objects, facts)
        is_ready = status.is_ready(facts)
        doing = replace(
            decided.progress,
            was_ready=decided.progress.was_ready or is_ready,
            full=dict(facts.wish) if is_ready else decided.progress.full,
        )
        outcome = await self._say(
            cluster, kept, facts, doing, _again_s(wanted.spec, decided, written, failures)
        )
        for happening in happenings.standing(facts, decided):
            await self._recorder.tell(cluster, happening)
        return replace(outcome, written=written, failed=bool(written.failures))

    async def _scene(
        self,
        kept: Remembered,
        wanted: Wanted,
        objects: Sequence[Object],
        facts: Facts,
        doing: Progress,
        can_surge: bool,
    ) -> deciding.Scene:
        wish, doing = await self._sampler.wish(kept, wanted, objects, facts, doing)
        scene = deciding.Scene(
            name=facts.name,
            now=self._clock(),
            spec=wanted.spec,
            sets=facts.sets,
            pods=facts.pods,
            templates=deciding.templates(objects),
            wish=wish,
            progress=doing,
            can_surge=can_surge,
        )
        if not deciding.asks_schedulers(scene):
            return scene
        target = self.target(facts.namespace, facts.name, kept.sources.token)
        try:
            views: Sequence[ExecutorView] = await self._link.executors(target)
            least = deciding.least_ready(wanted.spec, wish[EXECUTOR], views)
            capable = await self._link.is_ready(target, least)
        except LinkError as error:
            logger.debug("no scheduler answers", extra={"reason": error.message})
            return scene
        return replace(scene, executors=views, is_capable=capable)

    # What is done

    async def _undone(
        self, kept: Remembered, facts: Facts, decided: Decided, doing: Progress
    ) -> Decided:
        """Take a drain back; while that does not work it is kept, and tried again."""
        if decided.undo is None:
            return decided
        target = self.target(facts.namespace, facts.name, kept.sources.token)
        try:
            await self._link.undrain(target, decided.undo)
        except LinkError:
            if not facts.sets.get(SCHEDULER):
                # Without schedulers nobody minds the wish, and it goes with the state.
                return decided
            kept_drain = replace(decided.progress, drain=doing.drain)
            return replace(decided, progress=kept_drain, begin=None)
        return decided

    async def _drain_and_evict(self, kept: Remembered, facts: Facts, decided: Decided) -> list[str]:
        if decided.begin:
            target = self.target(facts.namespace, facts.name, kept.sources.token)
            try:
                await self._link.drain(target, decided.begin)
            except LinkError as error:
                logger.info(
                    "drain not asked for",
                    extra={"executor": decided.begin, "reason": error.message},
                )
        failures = []
        for pod in decided.evict:
            try:
                await self._kube.delete(POD, facts.namespace, pod.name, pod.uid)
            except errors.KubeError as error:
                failures.append(error.message)
        return failures

    async def _grow(self, facts: Facts, settled: Sequence[Object]) -> list[str]:
        failures = []
        for growth in growing.growths(settled, observing.claims(self._objects, facts)):
            try:
                answer = await self._kube.merge(
                    VOLUME_CLAIM, facts.namespace, growth.claim, growth.patch
                )
            except errors.KubeError as error:
                failures.append(
                    f"the volume '{growth.claim}' cannot grow to {growth.size}: {error.message}"
                )
            else:
                self._objects.put(answer)
        return failures

    # What is said

    def _status(self, cluster: Object, kept: Remembered) -> Mapping[str, Any]:
        """Return the status as it is, also while the watch has not shown what was written."""
        if kept.status is not None and kept.at_version == _version(cluster):
            return kept.status
        found: Mapping[str, Any] = cluster.get("status") or {}
        return found

    async def _say(
        self, cluster: Object, kept: Remembered, facts: Facts, doing: Progress, again_s: float
    ) -> Outcome:
        previous = self._status(cluster, kept)
        now = dt.datetime.fromtimestamp(self._clock(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        wanted = status.status(facts, previous, progress.written(doing), now)
        if changed := status.patch(previous, wanted):
            namespace, name = key(cluster)
            try:
                answer = await self._kube.merge(
                    CLUSTER, namespace, name, {"status": changed}, "status"
                )
            except errors.MissingError:
                # It went while nobody watched: nothing must be made for it any more.
                self._known.drop_cluster(cluster)
                return Outcome(_SOON_S)
            kept.status = {k: v for k, v in wanted.items() if v is not None}
            kept.at_version = _version(cluster)
            self._known.put_cluster(answer)
        return Outcome(again_s)


def service_of(namespace: str, name: str, token: str) -> Target:
    """Return where the schedulers of a cluster are found."""
    return Target(f"http://{name}.{namespace}.svc:{naming.METRICS_PORT}", token)


def _with(facts: Facts, scene: deciding.Scene, decided: Decided) -> Facts:
    return replace(
        facts,
        wish=scene.wish,
        is_rolling=decided.is_rolling,
        rollout=decided.rollout,
        trouble=decided.trouble,
        is_scaling=decided.is_scaling,
        scaling=decided.scaling,
    )


def _unreachable(written: Written) -> tuple[str, ...]:
    """Return the Services that are not as they must be for users and pods to reach the cluster."""
    return tuple(sorted(each.name for each in written.broken if each.kind == SERVICE.name))


def _again_s(
    spec: ClusterSpec, decided: Decided, written: Written, failures: Sequence[str]
) -> float:
    if written.is_away or decided.begin or decided.undo or decided.progress.drain:
        return _SOON_S
    if decided.is_rolling or decided.is_scaling or written.failures:
        return _ROLLING_S
    if spec.executor.max_replicas is not None or spec.manifest_from is not None or failures:
        return sampling.EVERY_S
    return RESYNC_S


def _owner(cluster: Object) -> Owner:
    metadata = cluster["metadata"]
    return Owner(naming.API_VERSION, naming.CLUSTER_KIND, metadata["name"], metadata["uid"])


def _version(object_: Object) -> str:
    return str(object_["metadata"].get("resourceVersion", ""))
