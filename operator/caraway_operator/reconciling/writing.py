"""Carries out a write plan and records the outcome, so that no write is repeated in vain."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from caraway_core.concurrency.backoff import Delays
from caraway_kube.api import errors
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import KINDS, ObjectRef, ref
from caraway_operator.kube import applying, merging, planning
from caraway_operator.kube.applying import AppliedObject
from caraway_operator.kube.object_cache import ObjectCache
from caraway_operator.kube.planning import LastApplied, PlannedWrite, WritePlan

logger = logging.getLogger(__name__)
_DELAYS = Delays(10.0, 60.0)
_REPAIRS = 5
_REPAIRS_S = 60.0
"""An object is repaired at most `_REPAIRS` times within this time. Further repairs wait."""


@dataclass(frozen=True, slots=True)
class RejectedWrite:
    """A write that the API server rejected, and when to retry it."""

    hash: str
    live: str
    """A digest of the live object. The write is retried at once when that changes."""
    message: str
    until: float
    failures: int


@dataclass(slots=True)
class WriteHistory:
    """The writes for one cluster."""

    applied: dict[ObjectRef, LastApplied] = field(default_factory=dict)
    rejected: dict[ObjectRef, RejectedWrite] = field(default_factory=dict)
    repairs: dict[ObjectRef, list[float]] = field(default_factory=dict)
    """When objects were repaired in the last minute."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The writes, and the failures."""

    created: tuple[ObjectRef, ...] = ()
    changed: tuple[ObjectRef, ...] = ()
    repaired: tuple[ObjectRef, ...] = ()
    recreated: tuple[ObjectRef, ...] = ()
    removed: tuple[ObjectRef, ...] = ()
    failures: tuple[str, ...] = ()
    broken: frozenset[ObjectRef] = frozenset()
    """Objects that differ from their desired state."""
    is_incomplete: bool = False
    """A write failed for a reason that may pass soon."""


async def write_plan(
    kube: KubeClient, objects: ObjectCache, history: WriteHistory, plan: WritePlan, now: float
) -> WriteResult:
    """Write the planned objects. A write that fails does not stop the others."""
    done: defaultdict[str, list[ObjectRef]] = defaultdict(list)
    failures: dict[ObjectRef, str] = {
        which: _about(which, "it is being deleted, and is created again afterwards")
        for which in plan.terminating
    }
    is_incomplete = False
    for each in plan.writes:
        which = ref(each.desired)
        if reason := _reason_to_wait(history, each, now):
            failures[which] = reason
            continue
        try:
            applied = await applying.apply_object(kube, each.desired, each.live)
        except errors.KubeError as error:
            failures[which] = _about(which, error.message)
            is_incomplete = is_incomplete or not error.is_lasting
            if error.is_lasting:
                history.rejected[which] = _rejected(history, each, failures[which], now)
            continue
        if action := _record(objects, history, each, applied, now):
            done[action].append(which)
    removed, problems = await _remove(kube, objects, plan)
    _forget(history, plan, removed, now)
    return WriteResult(
        created=tuple(done["create"]),
        changed=tuple(done["change"]),
        repaired=tuple(done["repair"]),
        recreated=tuple(done["recreate"]),
        removed=removed,
        failures=(*failures.values(), *problems),
        broken=frozenset(failures),
        is_incomplete=is_incomplete or bool(problems) or bool(plan.terminating),
    )


def _forget(
    history: WriteHistory, plan: WritePlan, removed: Sequence[ObjectRef], now: float
) -> None:
    """Drop records that nothing reads any more: objects come and go for years."""
    for which in removed:
        history.applied.pop(which, None)
        history.repairs.pop(which, None)
    # A rejected object that is still desired is planned each time.
    planned = {ref(each.desired) for each in plan.writes}
    history.rejected = {which: each for which, each in history.rejected.items() if which in planned}
    history.repairs = {
        which: recent
        for which, times in history.repairs.items()
        if (recent := [at for at in times if now - at < _REPAIRS_S])
    }


def _record(
    objects: ObjectCache,
    history: WriteHistory,
    write: PlannedWrite,
    applied: AppliedObject,
    now: float,
) -> str:
    """Record the answer of the API server. Returns the action, or '' if nothing changed."""
    which, answer = ref(write.desired), applied.object
    history.rejected.pop(which, None)
    history.applied[which] = planning.last_applied(write.desired, answer)
    objects.put(answer)
    if applied.is_unchanged:
        # The object only looked different, because the API server normalizes values.
        return ""
    action = "repair" if write.cause == "check" else write.cause
    if action == "repair":
        history.repairs.setdefault(which, []).append(now)
    action = "recreate" if applied.is_recreated else action
    logger.info("object written", extra={"object": str(which), "cause": action})
    return action


def _reason_to_wait(history: WriteHistory, write: PlannedWrite, now: float) -> str:
    """Return why a write is not tried yet, or '' if it is due."""
    which = ref(write.desired)
    rejected = history.rejected.get(which)
    if rejected and (rejected.hash, rejected.live) == _digests(write) and now < rejected.until:
        return rejected.message
    repairs = [at for at in history.repairs.get(which, ()) if now - at < _REPAIRS_S]
    if write.cause != "repair" or len(repairs) < _REPAIRS:
        return ""
    return _about(
        which,
        f"it was edited {len(repairs)} times within {_REPAIRS_S:g} s, and is restored within a "
        "minute; find out who edits it, because the operator always restores it",
    )


async def _remove(
    kube: KubeClient, objects: ObjectCache, plan: WritePlan
) -> tuple[tuple[ObjectRef, ...], Sequence[str]]:
    removed: list[ObjectRef] = []
    failures: list[str] = []
    for each in plan.removals:
        try:
            await kube.delete(KINDS[each.ref.kind], each.ref.namespace, each.ref.name, each.uid)
        except errors.KubeError as error:
            failures.append(_about(each.ref, error.message))
            continue
        objects.drop(each.ref, each.uid)
        removed.append(each.ref)
        logger.info("object removed", extra={"object": str(each.ref)})
    return tuple(removed), failures


def _rejected(
    history: WriteHistory, write: PlannedWrite, message: str, now: float
) -> RejectedWrite:
    before, failures = history.rejected.get(ref(write.desired)), 1
    hash_, live = _digests(write)
    if before is not None and (before.hash, before.live) == (hash_, live):
        failures = before.failures + 1
    return RejectedWrite(hash_, live, message, now + _DELAYS.delay_s(failures), failures)


def _digests(write: PlannedWrite) -> tuple[str, str]:
    """Return digests of the desired and of the live object."""
    desired: str = write.desired["metadata"]["annotations"][planning.HASH]
    if write.live is None:
        return desired, ""
    essence = [write.live["metadata"].get("uid"), merging.essence(write.live, write.desired)]
    return desired, planning.digest(essence)


def _about(which: ObjectRef, message: str) -> str:
    return f"{which.kind} '{which.name}': {message}"
