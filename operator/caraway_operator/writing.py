"""Carries a plan out, and remembers what came of it, so that nothing is written twice in vain."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from caraway_operator.kube import errors, planning
from caraway_operator.kube.client import Kube
from caraway_operator.kube.kinds import KINDS, Object, Ref, ref
from caraway_operator.kube.objects import Objects
from caraway_operator.kube.planning import Plan, Seen, Write

logger = logging.getLogger(__name__)
_FIRST_PAUSE_S = 10.0
_LONGEST_PAUSE_S = 300.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object that Kubernetes does not take as it is, and when to try again."""

    hash: str
    message: str
    until: float
    pause_s: float


@dataclass(slots=True)
class Memory:
    """What was written for one cluster."""

    seen: dict[Ref, Seen] = field(default_factory=dict)
    refusals: dict[Ref, Refusal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """What was done, and what was not."""

    created: tuple[Ref, ...] = ()
    changed: tuple[Ref, ...] = ()
    repaired: tuple[Ref, ...] = ()
    removed: tuple[Ref, ...] = ()
    failures: tuple[str, ...] = ()
    is_away: bool = False
    """Some of it failed in a way that soon passes."""


async def write(kube: Kube, objects: Objects, memory: Memory, plan: Plan, now: float) -> Written:
    """Write what the plan says; what is refused stops nothing else."""
    done: dict[str, list[Ref]] = {"create": [], "change": [], "repair": []}
    failures: list[str] = []
    is_away = False
    for each in plan.writes:
        which = ref(each.wanted)
        refusal = memory.refusals.get(which)
        if refusal and refusal.hash == _hash(each) and now < refusal.until:
            failures.append(refusal.message)
            continue
        try:
            if each.cause == "create":
                await _require_free(kube, each.wanted)
            answer = await kube.apply(each.wanted)
        except errors.KubeError as error:
            failures.append(f"{which.kind} '{which.name}': {error.message}")
            is_away = is_away or not error.is_lasting
            if error.is_lasting:
                memory.refusals[which] = _refused(each, failures[-1], refusal, now)
            continue
        memory.refusals.pop(which, None)
        memory.seen[which] = planning.observed(each.wanted, answer)
        was_needless = objects.version(which) == answer["metadata"].get("resourceVersion")
        objects.put(answer)
        if was_needless:
            # It only looked different, as the API writes values its own way.
            continue
        done[each.cause].append(which)
        logger.info("object written", extra={"object": str(which), "cause": each.cause})
    removed, troubles = await _remove(kube, objects, plan)
    return Written(
        tuple(done["create"]),
        tuple(done["change"]),
        tuple(done["repair"]),
        removed,
        (*failures, *troubles),
        is_away or bool(troubles),
    )


async def _require_free(kube: Kube, wanted: Object) -> None:
    """Refuse a name that somebody else's object has; it would be changed, and go with the cluster.

    Raises:
        RefusedError: it is taken.
    """
    metadata = wanted["metadata"]
    try:
        there = await kube.get(KINDS[wanted["kind"]], metadata["namespace"], metadata["name"])
    except errors.MissingError:
        return
    if planning.is_stranger(there, wanted):
        raise errors.RefusedError(
            "there is one of that name which does not belong to this cluster, and is left alone; "
            "rename it, or the cluster"
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
            failures.append(f"{each.ref.kind} '{each.ref.name}': {error.message}")
            continue
        objects.drop(each.ref, each.uid)
        removed.append(each.ref)
        logger.info("object removed", extra={"object": str(each.ref)})
    return tuple(removed), failures


def _refused(write: Write, message: str, before: Refusal | None, now: float) -> Refusal:
    pause_s = _FIRST_PAUSE_S
    if before is not None and before.hash == _hash(write):
        pause_s = min(before.pause_s * 2, _LONGEST_PAUSE_S)
    return Refusal(_hash(write), message, now + pause_s, pause_s)


def _hash(write: Write) -> str:
    found: str = write.wanted["metadata"]["annotations"][planning.HASH]
    return found
