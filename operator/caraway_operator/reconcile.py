"""One look at one cluster: read what is wanted and what there is, decide, write, say how it is.

Everything that is decided is decided by pure modules; this one asks and does.
"""

import datetime as dt
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from caraway_operator import deciding, growing, limits, naming, pods, progress, sources, status
from caraway_operator.deciding import Decided
from caraway_operator.happenings import happenings
from caraway_operator.known import Key, Known, key
from caraway_operator.kube import errors, planning
from caraway_operator.kube.client import Kube
from caraway_operator.kube.events import Recorder
from caraway_operator.kube.kinds import CLUSTER, POD, VOLUME_CLAIM, Object, Ref, ref
from caraway_operator.kube.objects import Objects
from caraway_operator.kube.planning import Owner, Plan
from caraway_operator.manifests import Wanted, meta
from caraway_operator.manifests import objects as build
from caraway_operator.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.pods import PodView, SetView
from caraway_operator.progress import Progress
from caraway_operator.scaling import autoscaling
from caraway_operator.scaling.autoscaling import Bounds, History
from caraway_operator.scheduler_link import ExecutorView, Link, LinkError, Target
from caraway_operator.sources import Sources
from caraway_operator.spec import declared, parsing
from caraway_operator.spec.cluster import ClusterSpec
from caraway_operator.status import Facts
from caraway_operator.writing import Memory, Written, write

logger = logging.getLogger(__name__)
RESYNC_S = 60.0
_SOON_S = 2.0
_ROLLING_S = 5.0
_LOAD_S = 15.0
_SOURCES_S = 45.0
_FRESH_S = 15.0
"""Sources are read again after so long where a ConfigMap of the user is among them."""


@dataclass(slots=True)
class _Remembered:
    """What is kept of a cluster between two looks; losing it costs a few requests."""

    memory: Memory = field(default_factory=Memory)
    history: History = field(default_factory=History)
    sources: Sources = field(default_factory=Sources)
    text: str | None = None
    of: tuple[int, str] = (0, "")
    read_at: float = float("-inf")
    built: tuple[tuple[Any, ...], list[Object]] = ((), [])
    written_status: Mapping[str, Any] | None = None
    at_version: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """When to look again, and what was written."""

    again_s: float
    written: Written = field(default_factory=Written)
    failed: bool = False


@dataclass(frozen=True, slots=True)
class _Read:
    """A spec that can be used, or why it cannot."""

    wanted: Wanted | None = None
    facts: Facts | None = None
    has_surge_room: bool = True


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
        self._version = version
        self._remembered: dict[Key, _Remembered] = {}
        self.kinds: frozenset[str] = frozenset()
        """Optional kinds that the API has."""
        self.target: Callable[[str, str, str], Target] = service_of

    def forget(self, which: Key) -> None:
        """Drop what was kept of a cluster that is gone."""
        self._remembered.pop(which, None)

    async def reconcile(self, cluster: Object) -> Outcome:
        """Bring a cluster one step nearer to what is wanted.

        Raises:
            KubeError: the API did not let the cluster be read, or told how it is.
        """
        kept = self._remembered.setdefault(key(cluster), _Remembered())
        metadata = cluster["metadata"]
        base = Facts(metadata["name"], metadata["namespace"], metadata.get("generation", 0))
        doing = progress.read(self._status(cluster, kept).get("progress"))
        if metadata.get("deletionTimestamp"):
            # Kubernetes removes what the cluster owns; nothing is made any more.
            return await self._say(cluster, kept, replace(base, is_leaving=True), doing, RESYNC_S)
        base = self._observed(base)
        try:
            read = await self._read(cluster, kept, base)
        except errors.KubeError as error:
            facts = replace(base, failures=[error.message], is_taken=False,
                            was_ready=doing.was_ready)  # fmt: skip
            await self._say(cluster, kept, facts, doing, RESYNC_S)
            return Outcome(_SOON_S, failed=True)
        if read.wanted is None:
            facts = replace(read.facts or base, was_ready=doing.was_ready)
            return await self._say(cluster, kept, facts, doing, _FRESH_S)
        facts = replace(read.facts or base, was_ready=doing.was_ready)
        if read.wanted.spec.paused:
            return await self._say(cluster, kept, replace(facts, is_paused=True), doing, RESYNC_S)
        return await self._act(cluster, kept, read, facts, doing)

    async def _act(
        self, cluster: Object, kept: _Remembered, read: _Read, facts: Facts, doing: Progress
    ) -> Outcome:
        wanted = read.wanted
        assert wanted is not None
        objects = self._built(kept, wanted)
        scene = await self._scene(kept, wanted, objects, facts, doing, read.has_surge_room)
        decided = deciding.decide(scene)
        decided = await self._undone(kept, facts, decided, doing)
        settled, hold = deciding.settle(objects, decided)
        live = self._live(facts)
        plan = planning.plan(settled, live, _owner(cluster), kept.memory.seen, hold)
        # Kept before anything is done: whoever comes after this process can take it back.
        before = replace(facts, wish=scene.wish)
        if decided.begin and decided.progress.drain != doing.drain:
            await self._say(cluster, kept, before, decided.progress, 0)
        written = await write(self._kube, self._objects, kept.memory, plan, self._clock())
        failures = [*written.failures, *kept.sources.missing, *_fixed(settled, live, plan)]
        failures += await self._grow(facts, settled)
        failures += await self._drain_and_evict(kept, facts, decided)
        facts = self._observed(
            replace(
                facts,
                wish=scene.wish,
                failures=failures,
                is_rolling=decided.is_rolling,
                rollout=decided.rollout,
                trouble=decided.trouble,
                is_scaling=decided.is_scaling,
                scaling=decided.scaling,
            )
        )
        doing = replace(
            decided.progress, was_ready=decided.progress.was_ready or status.is_ready(facts)
        )
        outcome = await self._say(
            cluster, kept, facts, doing, _again_s(wanted.spec, decided, written)
        )
        for happening in happenings(facts, self._status(cluster, kept), written, decided):
            await self._recorder.tell(cluster, happening)
        return replace(outcome, written=written, failed=bool(written.failures))

    # What is wanted

    async def _read(self, cluster: Object, kept: _Remembered, base: Facts) -> _Read:
        """Check the spec, read what it refers to, and apply limits."""
        name, namespace = base.name, base.namespace
        parsed = parsing.cluster(name, cluster.get("spec") or {})
        if parsed.spec is None:
            return _Read(facts=_invalid(base, parsed.problems))
        spec = parsed.spec
        is_due = self._is_due(kept, cluster)
        if spec.manifest_from is not None and is_due:
            kept.text = await sources.manifest_text(self._kube, namespace, spec)
        checked = (
            declared.inline(spec)
            if spec.manifest_from is None
            else declared.from_config_map(spec, kept.text)
        )
        if checked.declared is None:
            return _Read(facts=_invalid(base, checked.problems))
        limit = self._known.limits_of(namespace, spec.organization)
        allowed = limits.clamp(spec, limit, others=self._known.elder(cluster))
        facts = replace(base, clamped=[str(each) for each in allowed.clamped])
        if allowed.refused:
            refused = [str(each) for each in allowed.refused]
            return _Read(facts=replace(facts, refused=refused, is_taken=False))
        wanted = Wanted(
            name=name,
            namespace=namespace,
            spec=allowed.spec,
            declared=checked.declared,
            uid=cluster["metadata"]["uid"],
            generation=base.generation,
            version=self._version,
            limits=limit,
            kinds=self.kinds,
        )
        if is_due and not spec.paused:
            now = dt.datetime.fromtimestamp(self._clock(), dt.UTC)
            kept.sources = await sources.gather(self._kube, wanted, now)
            kept.of, kept.read_at = _of(cluster), self._clock()
        wanted = replace(wanted, secrets=kept.sources.checksums)
        facts = replace(
            facts,
            is_stopped=spec.stopped,
            is_tls=spec.tls.enabled,
            image=_image(wanted),
            version=meta.version(wanted),
        )
        most = limit.replicas if limit else -1
        return _Read(wanted, facts, has_surge_room=most < 0 or most > wanted.executor_count)

    def _is_due(self, kept: _Remembered, cluster: Object) -> bool:
        """Tell whether the Secrets and ConfigMaps are to be read again."""
        is_users = bool((cluster.get("spec") or {}).get("manifestFrom"))
        age = self._clock() - kept.read_at
        return kept.of != _of(cluster) or age >= (_FRESH_S if is_users else _SOURCES_S)

    def _built(self, kept: _Remembered, wanted: Wanted) -> list[Object]:
        """Build the objects, unless they are those of last time."""
        of = (
            wanted.generation, wanted.uid, wanted.limits, wanted.kinds, kept.text,
            tuple(sorted(wanted.secrets.items())),
        )  # fmt: skip
        if kept.built[0] != of:
            kept.built = (of, deciding.stamped(build(wanted)))
        return kept.built[1]

    # What there is

    def _observed(self, facts: Facts) -> Facts:
        """Add the sets, pods and claims as they are now."""
        there = self._objects.of(facts.namespace, facts.name)
        views = [pods.view(each) for which, each in there.items() if which.kind == POD.name]
        claims = [each for which, each in there.items() if which.kind == VOLUME_CLAIM.name]
        return replace(
            facts, sets=self._sets(facts), pods=views, claims=pods.claim_troubles(claims)
        )

    def _sets(self, facts: Facts) -> dict[str, SetView]:
        found = {}
        there = self._objects.of(facts.namespace, facts.name)
        for component in deciding.COMPONENTS:
            kind = "Deployment" if component == SCHEDULER else "StatefulSet"
            which = Ref(kind, facts.namespace, naming.of(facts.name, component))
            if which in there:
                found[component] = pods.set_view(there[which])
        return found

    def _live(self, facts: Facts) -> dict[Ref, Object]:
        return {
            which: each
            for which, each in self._objects.of(facts.namespace, facts.name).items()
            if which.kind not in (POD.name, VOLUME_CLAIM.name)
        }

    async def _scene(
        self,
        kept: _Remembered,
        wanted: Wanted,
        objects: Sequence[Object],
        facts: Facts,
        doing: Progress,
        can_surge: bool,
    ) -> deciding.Scene:
        wish, doing = await self._wish(kept, wanted, objects, facts, doing)
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

    async def _wish(
        self,
        kept: _Remembered,
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
        kept: _Remembered,
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
            if now - samples[-1].at >= _LOAD_S - 1:
                await self._sample(kept, facts, current, bounds)
        else:
            await self._sample(kept, facts, current, bounds)
        return autoscaling.decide(kept.history.samples, current, bounds, now).replicas

    async def _sample(self, kept: _Remembered, facts: Facts, current: int, bounds: Bounds) -> None:
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

    # What is done

    async def _undone(
        self, kept: _Remembered, facts: Facts, decided: Decided, doing: Progress
    ) -> Decided:
        """Take a drain back; while that does not work it is kept, and tried again."""
        if decided.undo is None:
            return decided
        target = self.target(facts.namespace, facts.name, kept.sources.token)
        try:
            await self._link.undrain(target, decided.undo)
        except LinkError:
            if not deciding.COMPONENTS or not facts.sets.get(SCHEDULER):
                return decided
            kept_drain = replace(decided.progress, drain=doing.drain)
            return replace(decided, progress=kept_drain, begin=None)
        return decided

    async def _drain_and_evict(
        self, kept: _Remembered, facts: Facts, decided: Decided
    ) -> list[str]:
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
        there = self._objects.of(facts.namespace, facts.name)
        claims = [each for which, each in there.items() if which.kind == VOLUME_CLAIM.name]
        failures = []
        for growth in growing.growths(settled, claims):
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

    def _status(self, cluster: Object, kept: _Remembered) -> Mapping[str, Any]:
        """Return the status as it is, also while the watch has not shown what was written."""
        if kept.written_status is not None and kept.at_version == _version(cluster):
            return kept.written_status
        found: Mapping[str, Any] = cluster.get("status") or {}
        return found

    async def _say(
        self, cluster: Object, kept: _Remembered, facts: Facts, doing: Progress, again_s: float
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
                return Outcome(RESYNC_S)
            kept.written_status = {k: v for k, v in wanted.items() if v is not None}
            kept.at_version = _version(cluster)
            self._known.put_cluster(answer)
        return Outcome(again_s)


def service_of(namespace: str, name: str, token: str) -> Target:
    """Return where the schedulers of a cluster are found."""
    return Target(f"http://{name}.{namespace}.svc:{naming.METRICS_PORT}", token)


def _invalid(base: Facts, problems: Sequence[object]) -> Facts:
    # What runs is left as it is, and measured by what it is told to be.
    wish = {component: there.replicas for component, there in base.sets.items()}
    return replace(base, problems=[str(each) for each in problems], is_taken=False, wish=wish)


def _fixed(settled: Sequence[Object], live: Mapping[Ref, Object], plan: Plan) -> list[str]:
    wanted = {ref(each): each for each in settled}
    return [
        f"{each.ref.kind} '{each.ref.name}': {each.field} cannot be changed once it is made; "
        "delete the object, and it is made anew"
        for each in plan.fixed
        if each.field != "volumeClaimTemplates"
        or not growing.is_only_size(wanted[each.ref], live[each.ref])
    ]


def _again_s(spec: ClusterSpec, decided: Decided, written: Written) -> float:
    if written.is_away or decided.begin or decided.undo or decided.progress.drain:
        return _SOON_S
    if decided.is_rolling or decided.is_scaling or written.failures:
        return _ROLLING_S
    if spec.executor.max_replicas is not None or spec.manifest_from is not None:
        return _LOAD_S
    return RESYNC_S


def _owner(cluster: Object) -> Owner:
    metadata = cluster["metadata"]
    return Owner(naming.API_VERSION, naming.CLUSTER_KIND, metadata["name"], metadata["uid"])


def _image(wanted: Wanted) -> str:
    image = wanted.spec.image
    if image.digest:
        return f"{image.repository}@{image.digest}"
    return f"{image.repository}:{image.tag or wanted.version}"


def _of(cluster: Object) -> tuple[int, str]:
    return cluster["metadata"].get("generation", 0), cluster["metadata"]["uid"]


def _version(object_: Object) -> str:
    return str(object_["metadata"].get("resourceVersion", ""))


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


__all__ = ["RESYNC_S", "Outcome", "PodView", "Reconciler", "service_of"]
