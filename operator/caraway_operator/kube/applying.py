"""Applies one object: creates it, replaces it, or recreates it if an immutable field differs."""

from dataclasses import dataclass
from typing import Literal

from caraway_kube.api import errors
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import KINDS, POD, Object
from caraway_operator.kube import merging, planning

_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class AppliedObject:
    """The object as the API server stores it."""

    object: Object
    is_recreated: bool = False
    is_unchanged: bool = False
    """Nothing differed after the API server normalized the values."""


async def apply_object(kube: KubeClient, desired: Object, live: Object | None) -> AppliedObject:
    """Write the desired object. `live` is the object as it was last observed.

    Raises:
        RequestRejectedError: the object was rejected, or the live one belongs to somebody else.
        ConflictError: the live object is being deleted, or keeps changing.
    """
    for _ in range(_ATTEMPTS):
        try:
            if live is None:
                return AppliedObject(await kube.create(desired))
            _require_ours(live, desired)
            if merging.must_recreate(desired, live):
                return await _recreate(kube, desired, live)
            answer = await kube.replace(merging.merged(desired, live))
            before, after = (merging.essence(each, desired) for each in (live, answer))
            return AppliedObject(answer, is_unchanged=before == after)
        except errors.ObjectTerminatingError:
            raise
        except errors.ConflictError:
            live = await _current(kube, desired)
        except errors.ObjectNotFoundError:
            if live is None:
                raise
            live = None
        except errors.ObjectInvalidError:
            # If the object can be created but not updated, an immutable field differs.
            if live is None or not await _can_create(kube, desired):
                raise
            return await _recreate(kube, desired, live)
    raise errors.ConflictError("another client keeps changing it; retrying")


async def _current(kube: KubeClient, desired: Object) -> Object | None:
    metadata = desired["metadata"]
    try:
        live = await kube.get(KINDS[desired["kind"]], metadata["namespace"], metadata["name"])
    except errors.ObjectNotFoundError:
        return None
    _require_ours(live, desired)
    return live


def _require_ours(live: Object, desired: Object) -> None:
    """Check that the live object belongs to the cluster, which would change and later delete it.

    Raises:
        RequestRejectedError: the object belongs to somebody else.
        ObjectTerminatingError: the object is being deleted.
    """
    if live["metadata"].get("deletionTimestamp"):
        raise errors.ObjectTerminatingError("it is being deleted, and is created again afterwards")
    if planning.is_foreign(live, desired):
        raise errors.RequestRejectedError(
            "an object with this name exists and does not belong to this cluster; "
            "rename it or the cluster"
        )


async def _can_create(kube: KubeClient, desired: Object) -> bool:
    """Ask the API server whether it would accept the object under a new name."""
    metadata = {**desired["metadata"], "generateName": f"{desired['metadata']['name'][:40]}-check-"}
    del metadata["name"]
    try:
        await kube.create({**desired, "metadata": metadata}, is_dry_run=True)
    except errors.KubeError:
        return False
    return True


async def _recreate(kube: KubeClient, desired: Object, live: Object) -> AppliedObject:
    """Delete the object and create it again. Pods and claims of a workload are kept.

    Raises:
        ObjectTerminatingError: the object still exists.
    """
    kind, metadata = KINDS[desired["kind"]], live["metadata"]
    has_pods = desired["kind"] in ("Deployment", "StatefulSet")
    # Deleting a StatefulSet in the background would delete its claims, and the data on them.
    propagation: Literal["Background", "Orphan"] = "Orphan" if has_pods else "Background"
    namespace, name = metadata["namespace"], metadata["name"]
    await kube.delete(kind, namespace, name, metadata["uid"], propagation)
    if has_pods and live["spec"].get("selector") != desired["spec"].get("selector"):
        await _remove_pods(kube, live)
    try:
        return AppliedObject(await kube.create(desired), is_recreated=True)
    except errors.ConflictError as exc:
        raise errors.ObjectTerminatingError(
            "it is recreated, because an immutable field has changed"
        ) from exc


async def _remove_pods(kube: KubeClient, owner: Object) -> None:
    """Delete pods that the new workload does not select, but whose names it needs."""
    metadata, labels = owner["metadata"], owner["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    for pod in (await kube.list(POD, metadata["namespace"], selector)).items:
        if pod["metadata"]["name"].startswith(f"{metadata['name']}-"):
            pod_metadata = pod["metadata"]
            await kube.delete(
                POD, pod_metadata["namespace"], pod_metadata["name"], pod_metadata["uid"]
            )
