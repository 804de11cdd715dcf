"""Writes one object: makes it, replaces it, or makes it again where the API allows no change."""

from dataclasses import dataclass
from typing import Literal

from caraway_operator.kube import carrying, errors, planning
from caraway_operator.kube.client import Kube
from caraway_operator.kube.kinds import KINDS, POD, Object

_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Stored:
    """The object as the API holds it now."""

    object: Object
    is_remade: bool = False
    is_needless: bool = False
    """The API found that nothing differed."""


async def store(kube: Kube, wanted: Object, live: Object | None) -> Stored:
    """Write an object as it is wanted; `live` is how it was last seen.

    Raises:
        RefusedError: the API does not take it, or somebody else has one of that name.
        ConflictError: it is being deleted, or changes all the time.
    """
    for _ in range(_ATTEMPTS):
        try:
            if live is None:
                return Stored(await kube.create(wanted))
            _require_ours(live, wanted)
            if carrying.must_be_remade(wanted, live):
                return await _remade(kube, wanted, live)
            answer = await kube.replace(carrying.merged(wanted, live))
            before, after = (carrying.essence(each, wanted) for each in (live, answer))
            return Stored(answer, is_needless=before == after)
        except errors.LeavingError:
            raise
        except errors.ConflictError:
            live = await _current(kube, wanted)
        except errors.MissingError:
            if live is None:
                raise
            live = None
        except errors.InvalidError:
            # What can be made, but not written over this one, is kept from it by a fixed field.
            if live is None or not await _can_be_made(kube, wanted):
                raise
            return await _remade(kube, wanted, live)
    raise errors.ConflictError("it is changed all the time by somebody else; trying again")


async def _current(kube: Kube, wanted: Object) -> Object | None:
    metadata = wanted["metadata"]
    try:
        live = await kube.get(KINDS[wanted["kind"]], metadata["namespace"], metadata["name"])
    except errors.MissingError:
        return None
    _require_ours(live, wanted)
    return live


def _require_ours(live: Object, wanted: Object) -> None:
    """Refuse a name that somebody else's object has; it would be changed, and go with the cluster.

    Raises:
        RefusedError: it is taken.
        ConflictError: it is being deleted.
    """
    if live["metadata"].get("deletionTimestamp"):
        raise errors.LeavingError("it is being deleted; it is made again once it is gone")
    if planning.is_stranger(live, wanted):
        raise errors.RefusedError(
            "there is one of that name which does not belong to this cluster, and is left alone; "
            "rename it, or the cluster"
        )


async def _can_be_made(kube: Kube, wanted: Object) -> bool:
    """Ask the API whether it would take the object if none of its name were there."""
    metadata = {**wanted["metadata"], "generateName": f"{wanted['metadata']['name'][:40]}-check-"}
    del metadata["name"]
    try:
        await kube.create({**wanted, "metadata": metadata}, is_dry_run=True)
    except errors.KubeError:
        return False
    return True


async def _remade(kube: Kube, wanted: Object, live: Object) -> Stored:
    """Delete the object and make it again. What a StatefulSet or Deployment has made stays.

    Raises:
        LeavingError: it is not gone yet.
    """
    kind, metadata = KINDS[wanted["kind"]], live["metadata"]
    has_pods = wanted["kind"] in ("Deployment", "StatefulSet")
    # Claims of a StatefulSet go with it, and the rows on them, unless it leaves them behind.
    propagation: Literal["Background", "Orphan"] = "Orphan" if has_pods else "Background"
    namespace, name = metadata["namespace"], metadata["name"]
    await kube.delete(kind, namespace, name, metadata["uid"], propagation)
    if has_pods and live["spec"].get("selector") != wanted["spec"].get("selector"):
        await _remove_pods(kube, live)
    try:
        return Stored(await kube.create(wanted), is_remade=True)
    except errors.ConflictError as exc:
        raise errors.LeavingError("it is made again, as a fixed field has changed") from exc


async def _remove_pods(kube: Kube, owner: Object) -> None:
    """Remove pods that the next object of the name would not know, and whose names it needs."""
    metadata, labels = owner["metadata"], owner["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    for pod in (await kube.list(POD, metadata["namespace"], selector)).items:
        if pod["metadata"]["name"].startswith(f"{metadata['name']}-"):
            there = pod["metadata"]
            await kube.delete(POD, there["namespace"], there["name"], there["uid"])
