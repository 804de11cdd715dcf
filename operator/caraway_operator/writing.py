"""Carries a plan out, and remembers what came of it, so that nothing is written twice in vain."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from caraway_core.backoff import Delays
from caraway_operator.kube import carrying, errors, planning, storing
from caraway_operator.kube.client import Kube
from caraway_operator.kube.kinds import KINDS, Ref, ref
from caraway_operator.kube.objects import Objects
from caraway_operator.kube.planning import Plan, Seen, Write
from caraway_operator.kube.storing import Stored

logger = logging.getLogger(__name__)
_DELAYS = Delays(10.0, 60.0)
_REPAIRS = 5
_REPAIRS_S = 60.0
"""So many repairs of an object are made at once; whoever edits it more often has to wait."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object that Kubernetes does not take as it is, and when to try again."""

    hash: str
    live: str
    """A digest of what was there: if that changes the next write may be taken."""
    message: str
    until: float
    failures: int


@dataclass(slots=True)
class Memory:
    """What was written for one cluster."""

    seen: dict[Ref, Seen] = field(default_factory=dict)
    refusals: dict[Ref, Refusal] = field(default_factory=dict)
    repairs: dict[Ref, list[float]] = field(default_factory=dict)
    """When objects were repaired in the last minute."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was done, and what was not."""

    created: tuple[Ref, ...] = ()
    changed: tuple[Ref, ...] = ()
    repaired: tuple[Ref, ...] = ()
    remade: tuple[Ref, ...] = ()
    removed: tuple[Ref, ...] = ()
    failures: tuple[str, ...] = ()
    broken: frozenset[Ref] = frozenset()
    """Objects that are not as they are wanted."""
    is_away: bool = False


async def write(kube: Kube, objects: Objects, memory: Memory, plan: Plan, now: float) -> Written:
    """Write what the plan says; what is refused stops nothing else."""
    done: defaultdict[str, list[Ref]] = defaultdict(list)
    failures: dict[Ref, str] = {
        which: _about(which, "it is being deleted; it is made again once it is gone")
        for which in plan.leaving
    }
    is_away = False
    for each in plan.writes:
        which = ref(each.wanted)
        if reason := _reason_to_wait(memory, each, now):
            failures[which] = reason
            continue
        try:
            stored = await storing.store(kube, each.wanted, each.live)
        except errors.KubeError as error:
            failures[which] = _about(which, error.message)
            is_away = is_away or not error.is_lasting
            if error.is_lasting:
                memory.refusals[which] = _refused(memory, each, failures[which], now)
            continue
        if how := _taken(objects, memory, each, stored, now):
            done[how].append(which)
    removed, troubles = await _remove(kube, objects, plan)
    return Written(
        created=tuple(done["create"]),
        changed=tuple(done["change"]),
        repaired=tuple(done["repair"]),
        remade=tuple(done["remake"]),
        removed=removed,
        failures=(*failures.values(), *troubles),
        broken=frozenset(failures),
        is_away=is_away or bool(troubles) or bool(plan.leaving),
    )


def _taken(objects: Objects, memory: Memory, write: Write, stored: Stored, now: float) -> str:
    """Note what the API made of a write; returns what was done, or nothing if it was needless."""
    which, answer = ref(write.wanted), stored.object
    memory.refusals.pop(which, None)
    memory.seen[which] = planning.observed(write.wanted, answer)
    objects.put(answer)
    if stored.is_needless:
        # It only looked different, as the API writes values its own way.
        return ""
    how = "repair" if write.cause == "check" else write.cause
    if how == "repair":
        memory.repairs.setdefault(which, []).append(now)
    how = "remake" if stored.is_remade else how
    logger.info("object written", extra={"object": str(which), "cause": how})
    return how


def _reason_to_wait(memory: Memory, write: Write, now: float) -> str:
    """Say why this write is not tried yet; empty if it is."""
    which = ref(write.wanted)
    refusal = memory.refusals.get(which)
    if refusal and (refusal.hash, refusal.live) == _of(write) and now < refusal.until:
        return refusal.message
    repairs = [at for at in memory.repairs.get(which, ()) if now - at < _REPAIRS_S]
    memory.repairs[which] = repairs
    if write.cause != "repair" or len(repairs) < _REPAIRS:
        return ""
    return _about(
        which,
        f"it was edited {len(repairs)} times within {_REPAIRS_S:g} s; it is put back within a "
        "minute. Find out who edits it, as the operator never gives in",
    )


async def _remove(
    kube: Kube, objects: Objects, plan: Plan
) -> tuple[tuple[Ref, ...], Sequence[str]]:
    removed: list[Ref] = []
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


def _refused(memory: Memory, write: Write, message: str, now: float) -> Refusal:
    before, failures = memory.refusals.get(ref(write.wanted)), 1
    hash_, live = _of(write)
    if before is not None and (before.hash, before.live) == (hash_, live):
        failures = before.failures + 1
    return Refusal(hash_, live, message, now + _DELAYS.delay_s(failures), failures)


def _of(write: Write) -> tuple[str, str]:
    """Return digests of what is wanted and of what is there."""
    wanted: str = write.wanted["metadata"]["annotations"][planning.HASH]
    if write.live is None:
        return wanted, ""
    essence = [write.live["metadata"].get("uid"), carrying.essence(write.live, write.wanted)]
    return wanted, planning.digest(essence)


def _about(which: Ref, message: str) -> str:
    return f"{which.kind} '{which.name}': {message}"
