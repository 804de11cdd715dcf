"""What must be written so that the live objects are as they are wanted: a pure decision."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caraway_operator.kube import carrying, comparing
from caraway_operator.kube.kinds import Object, Ref, ref
from caraway_operator.naming import COMPONENT_LABEL, INSTANCE_LABEL, NAME_LABEL

HASH = "caraway.dev/applied-hash"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose objects they are; they go when it goes."""

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
class Seen:
    """How an object looked after it was written: what was written, and what the API made of it."""

    uid: str
    hash: str
    made: str


@dataclass(frozen=True, slots=True)
class Write:
    """One object to write.

    The cause is `create`, `change`, `repair` (somebody edited it), or `check`: this process has
    not written it yet, so it does not know which form the API gives to it.
    """

    wanted: Object
    cause: str
    live: Object | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """An object that is no longer wanted."""

    ref: Ref
    uid: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written, then removed."""

    writes: tuple[Write, ...] = ()
    removals: tuple[Removal, ...] = ()
    held: tuple[Ref, ...] = ()
    """Objects that are due a change which has to wait."""
    leaving: tuple[Ref, ...] = ()
    """Objects that are being deleted, and can only be made again once they are gone."""


def plan(
    wanted: Sequence[Object],
    live: Mapping[Ref, Object],
    owner: Owner,
    seen: Mapping[Ref, Seen],
    hold: Collection[Ref] = (),
) -> Plan:
    """Compare; what is in `hold` is made if it is not there, and else left as it is."""
    writes: list[Write] = []
    held: list[Ref] = []
    leaving: list[Ref] = []
    for object_ in wanted:
        which = ref(object_)
        there = live.get(which)
        complete = sealed(carrying.settled(object_, there), owner)
        cause = _cause(complete, there, seen.get(which))
        if there is not None and there["metadata"].get("deletionTimestamp"):
            leaving.append(which)
        elif cause and there is not None and which in hold:
            held.append(which)
        elif cause:
            writes.append(Write(complete, cause, there))
    kept = {ref(object_) for object_ in wanted}
    removals = tuple(_removals(live, kept, owner))
    return Plan(tuple(writes), removals, tuple(held), tuple(leaving))


def sealed(wanted: Object, owner: Owner) -> Object:
    """Return the object with its owner, and with the hash of what is applied."""
    bare = comparing.without_nulls(wanted)
    metadata = {**bare["metadata"], "ownerReferences": [owner.reference]}
    whole = {**bare, "metadata": metadata}
    annotations = {**metadata.get("annotations", {}), HASH: digest(whole)}
    annotations[carrying.KEYS] = carrying.keys({**metadata, "annotations": annotations})
    return {**whole, "metadata": {**metadata, "annotations": annotations}}


def digest(value: Any) -> str:
    """Return a short hash of a value of JSON. Any: whatever the object holds."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def observed(written: Object, answer: Object) -> Seen:
    """Remember how the API holds what was written, so that a later edit is known as such."""
    made = digest(carrying.essence(answer, written))
    return Seen(answer["metadata"].get("uid", ""), _hash(written), made)


def is_owned(live: Object, uid: str) -> bool:
    """Tell whether the cluster with this uid made the object."""
    owners = live["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid and owner.get("controller") for owner in owners)


def is_stranger(live: Object, wanted: Object) -> bool:
    """Tell whether an object has the name of the wanted one, and is not the cluster's."""
    owners = {each["uid"] for each in wanted["metadata"].get("ownerReferences") or ()}
    labels = live["metadata"].get("labels") or {}
    mine = {key: wanted["metadata"]["labels"][key] for key in (NAME_LABEL, INSTANCE_LABEL)}
    if any(is_owned(live, uid) for uid in owners):
        return False
    if any(each.get("controller") for each in live["metadata"].get("ownerReferences") or ()):
        return True
    # Those of a chart without an operator have the labels, and are taken over; what the operator
    # itself runs on has them too where a cluster is called like it.
    return labels.get(COMPONENT_LABEL) == "operator" or not mine.items() <= labels.items()


def _cause(wanted: Object, live: Object | None, seen: Seen | None) -> str:
    if live is None:
        return "create"
    if _hash(live) != _hash(wanted):
        return "change"
    if seen is None or (seen.hash, seen.uid) != (_hash(wanted), live["metadata"].get("uid")):
        return "check"
    # The form that the API gave to values after the write is the form that they must keep.
    return "" if digest(carrying.essence(live, wanted)) == seen.made else "repair"


def _hash(object_: Object) -> str:
    found: str = (object_["metadata"].get("annotations") or {}).get(HASH, "")
    return found


def _removals(live: Mapping[Ref, Object], kept: Collection[Ref], owner: Owner) -> list[Removal]:
    return [
        Removal(which, object_["metadata"]["uid"])
        for which, object_ in sorted(live.items())
        if which not in kept
        and is_owned(object_, owner.uid)
        and not object_["metadata"].get("deletionTimestamp")
    ]
