"""Plans the writes that bring the live objects to their desired state. Pure."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from caraway_kube.api.kinds import Object, ObjectRef, ref
from caraway_kube.naming import COMPONENT_LABEL, INSTANCE_LABEL, NAME_LABEL
from caraway_operator.kube import comparing, merging

HASH = "caraway.dev/applied-hash"


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """The owner of objects, with which Kubernetes deletes them."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def reference(self) -> Object:
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


@dataclass(frozen=True, slots=True)
class LastApplied:
    """The last write of an object, and the form in which the API server stored it."""

    uid: str
    hash: str
    stored: str


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """An object to write.

    The cause is `create`, `change`, `repair` (it was edited), or `check`: this process has not
    written it yet, so it does not know how the API server normalizes it.
    """

    desired: Object
    cause: str
    live: Object | None = None


@dataclass(frozen=True, slots=True)
class PlannedDeletion:
    """An object that is no longer desired."""

    ref: ObjectRef
    uid: str


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The objects to write, and then to remove."""

    writes: tuple[PlannedWrite, ...] = ()
    removals: tuple[PlannedDeletion, ...] = ()
    held: tuple[ObjectRef, ...] = ()
    """Objects whose change has to wait."""
    terminating: tuple[ObjectRef, ...] = ()
    """Objects that are being deleted. They are created again afterwards."""


def plan(
    desired: Sequence[Object],
    live: Mapping[ObjectRef, Object],
    owner: OwnerReference,
    applied: Mapping[ObjectRef, LastApplied],
    hold: Collection[ObjectRef] = (),
) -> WritePlan:
    """Plan the writes. Objects in `hold` are created if missing, but not changed."""
    writes: list[PlannedWrite] = []
    refs: list[ObjectRef] = []
    terminating: list[ObjectRef] = []
    for object_ in desired:
        which = ref(object_)
        current = live.get(which)
        complete = with_owner_and_hash(merging.settled(object_, current), owner)
        cause = _cause(complete, current, applied.get(which))
        if current is not None and current["metadata"].get("deletionTimestamp"):
            terminating.append(which)
        elif cause and current is not None and which in hold:
            refs.append(which)
        elif cause:
            writes.append(PlannedWrite(complete, cause, current))
    kept = {ref(object_) for object_ in desired}
    removals = tuple(_removals(live, kept, owner))
    return WritePlan(tuple(writes), removals, tuple(refs), tuple(terminating))


def with_owner_and_hash(desired: Object, owner: OwnerReference) -> Object:
    """Return the object with its owner reference and the hash of its content."""
    bare = comparing.without_nulls(desired)
    metadata = {**bare["metadata"], "ownerReferences": [owner.reference]}
    whole = {**bare, "metadata": metadata}
    annotations = {**metadata.get("annotations", {}), HASH: digest(whole)}
    annotations[merging.KEYS] = merging.keys({**metadata, "annotations": annotations})
    return {**whole, "metadata": {**metadata, "annotations": annotations}}


def digest(value: object) -> str:
    """Return a short hash of a JSON value. Any: a part of an object."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def last_applied(written: Object, answer: Object) -> LastApplied:
    """Return how the API server stored a written object, so that later edits can be detected."""
    made = digest(merging.essence(answer, written))
    return LastApplied(answer["metadata"].get("uid", ""), _hash(written), made)


def is_owned(live: Object, uid: str) -> bool:
    """Return whether the cluster with this uid is the controller of the object."""
    owners = live["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid and owner.get("controller") for owner in owners)


def is_foreign(live: Object, desired: Object) -> bool:
    """Return whether a live object with the name of a desired one belongs to somebody else."""
    owners = {each["uid"] for each in desired["metadata"].get("ownerReferences") or ()}
    labels = live["metadata"].get("labels") or {}
    mine = {key: desired["metadata"]["labels"][key] for key in (NAME_LABEL, INSTANCE_LABEL)}
    if any(is_owned(live, uid) for uid in owners):
        return False
    if any(each.get("controller") for each in live["metadata"].get("ownerReferences") or ()):
        return True
    # Objects of the chart's standalone mode have the labels and are adopted. The operator's own
    # objects have them too, if a cluster has the operator's name.
    return labels.get(COMPONENT_LABEL) == "operator" or not mine.items() <= labels.items()


def _cause(desired: Object, live: Object | None, applied: LastApplied | None) -> str:
    if live is None:
        return "create"
    if _hash(live) != _hash(desired):
        return "change"
    if applied is None or (applied.hash, applied.uid) != (
        _hash(desired),
        live["metadata"].get("uid"),
    ):
        return "check"
    # The values must stay as the API server stored them after the write.
    return "" if digest(merging.essence(live, desired)) == applied.stored else "repair"


def _hash(object_: Object) -> str:
    found: str = (object_["metadata"].get("annotations") or {}).get(HASH, "")
    return found


def _removals(
    live: Mapping[ObjectRef, Object], kept: Collection[ObjectRef], owner: OwnerReference
) -> list[PlannedDeletion]:
    return [
        PlannedDeletion(which, object_["metadata"]["uid"])
        for which, object_ in sorted(live.items())
        if which not in kept
        and is_owned(object_, owner.uid)
        and not object_["metadata"].get("deletionTimestamp")
    ]
