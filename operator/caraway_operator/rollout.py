"""A new template of pods, one step at a time, so that no query fails: a pure decision.

The order is: one executor, the schedulers, the other executors one by one, the state, the head. The
first executor shows whether the new pods come up at all, and an executor of another version of the
protocol is of use to new schedulers only: they find it ready, take over, and the rest follows.
Whatever does not come up stops the rollout there; what was not replaced yet goes on serving.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from caraway_operator.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.pods import PodView, SetView, Trouble
from caraway_operator.scaling import draining
from caraway_operator.scaling.draining import Drain
from caraway_operator.scheduler_link import ExecutorView

_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Scene:
    """What a decision is made of. `sets` and `templates` are by component."""

    now: float
    sets: Mapping[str, SetView]
    """What there is."""
    templates: Mapping[str, str]
    """Hashes of the templates that are wanted."""
    pods: Sequence[PodView]
    executors: Collection[ExecutorView] | None
    """What a scheduler says of executors; None while none answers."""
    drain: Drain | None
    step: str
    since: float
    """What is waited for, and since when, as the last decision had it."""
    deadline_s: float
    drain_timeout_s: float
    wish: int = 2
    """Executors that there shall be."""
    is_capable: bool = True
    """As many executors are ready as must be before another one is replaced."""
    can_surge: bool = True


@dataclass(frozen=True, slots=True)
class Rollout:
    """What may be written, and what is to be done first."""

    hold: frozenset[str] = frozenset()
    """Components whose new template waits."""
    partition: int = 0
    surge: int = 0
    """Executors beyond those wanted, so that a single one can be replaced."""
    drain: Drain | None = None
    begin: str | None = None
    undo: str | None = None
    evict: tuple[PodView, ...] = ()
    """Broken pods, which a StatefulSet would wait for instead of replacing them."""
    is_active: bool = False
    touches_executors: bool = False
    """Executors are being replaced: none may be removed meanwhile."""
    step: str = ""
    since: float = 0.0
    message: str = ""
    trouble: Trouble | None = None


def decide(scene: Scene) -> Rollout:
    """Say what the next step is."""
    pending = {
        component
        for component, there in scene.sets.items()
        if there.template != scene.templates.get(component, there.template)
    }
    executors = _executors(scene, EXECUTOR in pending)
    canary = _has_canary(scene, executors)
    schedulers_done = SCHEDULER not in pending and _is_complete(scene, SCHEDULER)
    hold: set[str] = set()
    if SCHEDULER in pending and not canary and _serves(scene, SCHEDULER):
        hold.add(SCHEDULER)
    is_scheduler_due = SCHEDULER in pending or not schedulers_done
    if executors.is_active and canary and is_scheduler_due and not executors.trouble:
        # New executors may be of use to new schedulers only, so those come first.
        executors = _paused(scene, executors, "the schedulers")
    others_done = schedulers_done and not executors.is_active and _is_complete(scene, EXECUTOR)
    if STATE in pending and not others_done and _serves(scene, STATE):
        hold.add(STATE)
    # The head keeps what it knows in the state: so it starts once, beside a state that is there.
    state_done = others_done and STATE not in pending and _is_complete(scene, STATE)
    if HEAD in pending and not state_done and _serves(scene, HEAD):
        hold.add(HEAD)
    found = replace(
        executors,
        hold=frozenset(hold),
        touches_executors=executors.is_active,
        evict=(*executors.evict, *_stuck(scene, pending)),
    )
    return _told(scene, found, pending)


def _executors(scene: Scene, is_pending: bool) -> Rollout:
    there = scene.sets.get(EXECUTOR)
    drain = scene.drain if scene.drain and scene.drain.purpose == "update" else None
    idle = Rollout(undo=drain.executor if drain else None)
    if there is None or not there.replicas:
        return idle
    if not there.revision and not is_pending:
        # It was only just made, and its status is empty: no pod can be of an older template.
        return idle
    surge = _surge(scene, there)
    if is_pending:
        return replace(
            idle, partition=there.replicas, surge=surge, is_active=True, step="executors:begin"
        )
    pods = [pod for pod in scene.pods if pod.component == EXECUTOR]
    outdated = [pod for pod in pods if pod.revision != there.revision and not pod.is_leaving]
    # A new template comes with a partition; without one the revision in the status still holds.
    if not there.is_observed and there.partition:
        return Rollout(
            partition=there.partition, surge=surge, drain=drain, is_active=True,
            step="executors:begin", message="the executors' new template is taken notice of",
        )  # fmt: skip
    if not outdated:
        return idle
    return _replacing(scene, there, pods, outdated, drain)


def _replacing(
    scene: Scene,
    there: SetView,
    pods: Sequence[PodView],
    outdated: Sequence[PodView],
    drain: Drain | None,
) -> Rollout:
    base = Rollout(
        partition=there.partition, drain=drain, is_active=True, surge=_surge(scene, there)
    )
    broken = _broken_tail(outdated)
    if broken:
        # They are of no use to anybody: nothing is lost if they are replaced at once.
        partition = min(there.partition, broken[-1].ordinal)
        return replace(
            base, partition=partition, evict=tuple(broken), drain=None,
            undo=drain.executor if drain else None, step=f"executors:{broken[-1].name}",
            message=f"replaces {broken[-1].name}, which does not work",
        )  # fmt: skip
    updated = [pod for pod in pods if pod.revision == there.revision]
    coming = [pod for pod in updated if not pod.is_ready and not _is_refused(scene, pod)]
    if coming or len(pods) < there.replicas or any(pod.is_leaving for pod in pods):
        trouble = next((pod.trouble for pod in coming if pod.trouble), None)
        name = coming[0].name if coming else "an executor"
        return replace(
            base, step=f"executors:{name}", message=f"waits for {name} to be ready",
            trouble=trouble,
        )  # fmt: skip
    last = max(outdated, key=lambda pod: pod.ordinal)
    if last.ordinal >= there.partition:
        step = f"executors:{last.name}:stop"
        # A StatefulSet waits for pods that are not well, wherever they are; this one is of no more
        # use, so it need not wait for them.
        waited = step == scene.step and scene.now - scene.since >= _PATIENCE_S
        return replace(
            base, evict=(last,) if waited or not last.is_ready else (), drain=None,
            step=step, message=f"waits for {last.name} to be replaced",
        )  # fmt: skip
    return _draining(scene, base, last)


def _draining(scene: Scene, base: Rollout, last: PodView) -> Rollout:
    drain, step = base.drain, f"executors:{last.name}"
    if drain is not None and drain.executor != last.name:
        return replace(base, drain=None, undo=drain.executor, step=step)
    if not _serves(scene, SCHEDULER):
        message = f"no scheduler serves, so {last.name} has nothing to do"
        return replace(base, partition=last.ordinal, drain=None, step=step, message=message)
    if drain is None and not scene.is_capable:
        return replace(base, step=step, message=f"waits for executors before {last.name} drains")
    if drain is None:
        begun = Drain(last.name, scene.now, "update")
        return replace(base, drain=begun, begin=last.name, step=step, message=f"{last.name} drains")
    reason = draining.released(drain, scene.executors, scene.now, scene.drain_timeout_s)
    if reason:
        return replace(base, partition=last.ordinal, drain=None, step=step, message=reason)
    return replace(base, begin=last.name, step=step, message=f"{last.name} drains")


def _paused(scene: Scene, executors: Rollout, what: str) -> Rollout:
    """Leave the executors as they are until something else has happened."""
    there = scene.sets[EXECUTOR]
    drain = scene.drain if scene.drain and scene.drain.purpose == "update" else None
    return Rollout(
        partition=there.partition,
        surge=executors.surge,
        undo=drain.executor if drain else None,
        is_active=True,
        step=f"executors:after {what}",
        message=f"the other executors follow {what}",
    )


def _told(scene: Scene, rollout: Rollout, pending: Collection[str]) -> Rollout:
    """Add what is waited for, since when, and whether that is too long."""
    step, message, trouble = rollout.step, rollout.message, rollout.trouble
    is_active = rollout.is_active or bool(pending)
    for component in (SCHEDULER, STATE, HEAD):
        there = scene.sets.get(component)
        if there is None or component in rollout.hold or trouble:
            continue
        wanted = f"{component}:{scene.templates.get(component, '')}"
        is_mixed = there.updated < there.present
        # Once begun it lasts until all pods are ready.
        is_begun = scene.step == wanted and not there.is_complete
        if component in pending or is_mixed or is_begun:
            is_active = True
            step, message = wanted, f"the {component} is replaced"
            trouble = _trouble_of(scene, component)
    if not is_active:
        return rollout
    if not step:
        # What is held back waits for pods that are new already, and not there or not ready yet.
        late = next((c for c in (SCHEDULER, EXECUTOR, STATE) if not _is_complete(scene, c)), HEAD)
        step, message = f"{late}:ready", f"waits for the {late} to be ready"
    since = scene.since if step == scene.step else scene.now
    if trouble is None and scene.now - since >= scene.deadline_s:
        trouble = Trouble(
            "ProgressDeadlineExceeded", f"{message or step}: not within {scene.deadline_s:g} s"
        )
    return replace(
        rollout, is_active=True, step=step, since=since, message=message, trouble=trouble
    )


def _trouble_of(scene: Scene, component: str) -> Trouble | None:
    of_pods = (
        pod.trouble
        for pod in scene.pods
        if pod.component == component and not pod.is_ready and not pod.is_leaving
    )
    return next((found for found in of_pods if found), scene.sets[component].trouble)


def _has_canary(scene: Scene, executors: Rollout) -> bool:
    """Tell whether an executor of the new template works, or there is none to wait for."""
    there = scene.sets.get(EXECUTOR)
    if there is None or not there.replicas or not executors.is_active:
        return True
    if there.template != scene.templates.get(EXECUTOR, there.template) or not there.is_observed:
        return False
    return any(
        pod.component == EXECUTOR
        and pod.revision == there.revision
        and (pod.is_ready or _is_refused(scene, pod))
        for pod in scene.pods
    )


def _is_refused(scene: Scene, pod: PodView) -> bool:
    """Tell whether it is there, and only waits for schedulers of its own version."""
    return any(each.id == pod.name and each.is_refused for each in scene.executors or ())


def _stuck(scene: Scene, pending: Collection[str]) -> list[PodView]:
    """Return pods of head and state that do not work, and that a StatefulSet may wait for."""
    settled = {
        component: there
        for component, there in scene.sets.items()
        if component in (HEAD, STATE) and component not in pending and there.is_observed
    }
    return [
        pod
        for pod in scene.pods
        if pod.component in settled
        and pod.revision != settled[pod.component].revision
        and not pod.is_ready
        and not pod.is_leaving
    ]


def _broken_tail(outdated: Sequence[PodView]) -> list[PodView]:
    """Return the highest ones that do not work, as far down as there is no other between them."""
    broken: list[PodView] = []
    for pod in sorted(outdated, key=lambda pod: -pod.ordinal):
        if pod.is_ready or pod.trouble is None:
            break
        broken.append(pod)
    return broken


def _serves(scene: Scene, component: str) -> bool:
    """Tell whether there is anything to spare: what does not work may be replaced at once."""
    there = scene.sets.get(component)
    return there is not None and there.ready > 0


def _is_complete(scene: Scene, component: str) -> bool:
    there = scene.sets.get(component)
    return there is None or there.is_complete


def _surge(scene: Scene, there: SetView) -> int:
    """Return 1 if a second executor shall work while the only one is replaced."""
    works = there.replicas > 1 or there.ready > 0
    return int(scene.wish == 1 and scene.can_surge and works)
