"""From what is wanted and what there is to what may be written now: rollout and scaling together.

Pure: the driver asks schedulers and Kubernetes, and does what is said here.
"""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from caraway_operator import naming, rollout
from caraway_operator.kube import planning
from caraway_operator.kube.kinds import Object, Ref, ref
from caraway_operator.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.pods import TEMPLATE_HASH, PodView, SetView, Trouble
from caraway_operator.progress import Progress
from caraway_operator.resources.cluster import ClusterSpec
from caraway_operator.scaling import draining
from caraway_operator.scaling.draining import Drain
from caraway_operator.scheduler_link import ExecutorView

COMPONENTS = (EXECUTOR, SCHEDULER, HEAD, STATE)
_KINDS = frozenset({"StatefulSet", "Deployment"})


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster at a moment."""

    name: str
    now: float
    spec: ClusterSpec
    sets: Mapping[str, SetView]
    pods: Sequence[PodView]
    templates: Mapping[str, str]
    wish: Mapping[str, int]
    """Pods that there shall be in the end, by component."""
    progress: Progress
    executors: Collection[ExecutorView] | None = None
    is_capable: bool = False
    can_surge: bool = True


@dataclass(frozen=True, slots=True)
class Decided:
    """What may be written, and what is to be done beside that."""

    replicas: int
    partition: int
    hold: frozenset[str] = frozenset()
    begin: str | None = None
    undo: str | None = None
    evict: tuple[PodView, ...] = ()
    progress: Progress = field(default_factory=Progress)
    is_rolling: bool = False
    rollout: str = ""
    trouble: Trouble | None = None
    is_scaling: bool = False
    scaling: str = ""


def stamped(objects: Sequence[Object]) -> list[Object]:
    """Return the objects; those with pods say which template they have."""
    return [_stamped(object_) if object_["kind"] in _KINDS else object_ for object_ in objects]


def templates(objects: Sequence[Object]) -> dict[str, str]:
    """Return the hash of each component's template."""
    return {
        component_of(object_): object_["metadata"]["annotations"][TEMPLATE_HASH]
        for object_ in objects
        if object_["kind"] in _KINDS
    }


def component_of(object_: Object) -> str:
    """Return the component that an object belongs to."""
    found: str = (object_["metadata"].get("labels") or {}).get(naming.COMPONENT_LABEL, "")
    return found


def asks_schedulers(scene: Scene) -> bool:
    """Tell whether a decision needs to know what schedulers say of executors."""
    there = scene.sets.get(EXECUTOR)
    if there is None:
        return False
    is_changing = any(
        each.template != scene.templates.get(component, each.template)
        for component, each in scene.sets.items()
    )
    is_mixed = any(
        pod.component == EXECUTOR and pod.revision != there.revision for pod in scene.pods
    )
    is_shrinking = scene.wish[EXECUTOR] < there.replicas
    return is_changing or is_mixed or is_shrinking or scene.progress.drain is not None


def decide(scene: Scene) -> Decided:
    """Say how far the cluster may go now."""
    wish, there = scene.wish[EXECUTOR], scene.sets.get(EXECUTOR)
    if there is None or scene.spec.stopped:
        # Nothing serves, or shall serve: nothing is to be spared.
        begun = scene.progress.drain
        kept = Progress(executors=scene.progress.executors, was_ready=scene.progress.was_ready)
        return Decided(wish, 0, undo=begun.executor if begun else None, progress=kept)
    rolled = rollout.decide(_rollout_scene(scene))
    if rolled.touches_executors:
        return _rolling(scene, there, rolled)
    step = draining.decide(
        draining.Scene(
            now=scene.now,
            wish=wish,
            replicas=there.replicas,
            present=there.present,
            name=there.name,
            drain=scene.progress.drain,
            executors=scene.executors,
            timeout_s=scene.spec.executor.drain_timeout_seconds,
            has_schedulers=_has_schedulers(scene),
        )
    )
    return replace(
        _told(scene, rolled, step.drain),
        replicas=step.replicas,
        begin=step.begin,
        undo=step.undo or rolled.undo,
        is_scaling=step.is_waiting,
        scaling=step.why,
    )


def settle(objects: Sequence[Object], decided: Decided) -> tuple[list[Object], list[Ref]]:
    """Return the objects with the numbers that were decided, and those that must wait."""
    settled = [
        _numbered(object_, decided) if component_of(object_) == EXECUTOR else object_
        for object_ in objects
    ]
    hold = [
        ref(object_)
        for object_ in settled
        if object_["kind"] in _KINDS and component_of(object_) in decided.hold
    ]
    return settled, hold


def _rolling(scene: Scene, there: SetView, rolled: rollout.Rollout) -> Decided:
    # None is removed meanwhile: that waits until the rollout is through.
    replicas = max(there.replicas, scene.wish[EXECUTOR] + rolled.surge)
    begun = scene.progress.drain
    if begun is not None and begun.purpose == "scale":
        return replace(_told(scene, rolled, None), replicas=replicas, undo=begun.executor)
    return replace(
        _told(scene, rolled, rolled.drain),
        replicas=replicas,
        begin=rolled.begin,
        undo=rolled.undo,
        evict=rolled.evict,
    )


def _told(scene: Scene, rolled: rollout.Rollout, drain: Drain | None) -> Decided:
    progress = replace(scene.progress, drain=drain, step=rolled.step, since=rolled.since)
    return Decided(
        replicas=0,
        partition=rolled.partition,
        hold=rolled.hold,
        progress=progress,
        is_rolling=rolled.is_active,
        rollout=rolled.message,
        trouble=rolled.trouble,
    )


def _rollout_scene(scene: Scene) -> rollout.Scene:
    return rollout.Scene(
        now=scene.now,
        sets=scene.sets,
        templates=scene.templates,
        pods=scene.pods,
        executors=scene.executors,
        drain=scene.progress.drain,
        step=scene.progress.step,
        since=scene.progress.since,
        deadline_s=scene.spec.update_strategy.progress_deadline_seconds,
        drain_timeout_s=scene.spec.executor.drain_timeout_seconds,
        wish=scene.wish[EXECUTOR],
        is_capable=scene.is_capable,
        can_surge=scene.can_surge,
    )


def least_ready(spec: ClusterSpec, wish: int, executors: Collection[ExecutorView]) -> int:
    """Return how many executors must be ready before one more is replaced."""
    named = spec.update_strategy.min_ready_executors
    least = max(1, wish - 1) if named is None else named
    # Of two versions of the protocol schedulers see those of their own only.
    refused = sum(each.is_refused for each in executors)
    return max(min(least, wish - refused), 1 if wish and least else 0)


def _has_schedulers(scene: Scene) -> bool:
    there = scene.sets.get(SCHEDULER)
    return there is not None and there.present > 0


def _stamped(object_: Object) -> Object:
    metadata = object_["metadata"]
    stamp = {TEMPLATE_HASH: planning.digest(object_["spec"]["template"])}
    annotations = {**(metadata.get("annotations") or {}), **stamp}
    return {**object_, "metadata": {**metadata, "annotations": annotations}}


def _numbered(object_: Object, decided: Decided) -> Object:
    if object_["kind"] != "StatefulSet":
        return object_
    numbered = copy.copy(object_)
    numbered["spec"] = {
        **object_["spec"],
        "replicas": decided.replicas,
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": decided.partition},
        },
    }
    return numbered
