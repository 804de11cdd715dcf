"""What must be written so that the live objects are as they are wanted: a pure decision."""

import copy
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_operator.kube import comparing
from caraway_operator.kube.kinds import Object, Ref, ref
from caraway_operator.naming import COMPONENT_LABEL, INSTANCE_LABEL, NAME_LABEL

HASH = "caraway.dev/applied-hash"
_FIXED: Mapping[str, tuple[str, ...]] = {
    "StatefulSet": ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"),
    "Deployment": ("selector",),
    "Service": ("clusterIP",),
}


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
    """One object to apply, because of `create`, `change`, or `repair`: somebody edited it."""

    wanted: Object
    cause: str


@dataclass(frozen=True, slots=True)
class Removal:
    """An object that is no longer wanted."""

    ref: Ref
    uid: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """A field that cannot be changed any more, and keeps the value that it has."""

    ref: Ref
    field: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write, in this order, and what to remove after that."""

    writes: tuple[Write, ...] = ()
    removals: tuple[Removal, ...] = ()
    fixed: tuple[Fixed, ...] = ()
    held: tuple[Ref, ...] = field(default=())
    """Objects that are due a change which has to wait."""


def plan(
    wanted: Sequence[Object],
    live: Mapping[Ref, Object],
    owner: Owner,
    seen: Mapping[Ref, Seen],
    hold: Collection[Ref] = (),
) -> Plan:
    """Compare; what is in `hold` is made if it is not there, and else left as it is."""
    writes: list[Write] = []
    fixed: list[Fixed] = []
    held: list[Ref] = []
    for object_ in wanted:
        which = ref(object_)
        there = live.get(which)
        settled, kept = settle(object_, there)
        fixed += (Fixed(which, name) for name in kept)
        complete = sealed(settled, owner)
        cause = _cause(complete, there, seen.get(which))
        if cause and there is not None and which in hold:
            held.append(which)
        elif cause:
            writes.append(Write(complete, cause))
    kept_refs = {ref(object_) for object_ in wanted}
    return Plan(tuple(writes), tuple(_removals(live, kept_refs, owner)), tuple(fixed), tuple(held))


def settle(wanted: Object, live: Object | None) -> tuple[Object, tuple[str, ...]]:
    """Return what can be applied: fields that are fixed once an object exists stay as they are."""
    spec, there = wanted.get("spec"), (live or {}).get("spec")
    if not spec or not there:
        return wanted, ()
    kept = tuple(
        name
        for name in _FIXED.get(wanted["kind"], ())
        if name in spec and not comparing.covers(spec[name], there.get(name))
    )
    if not kept:
        return wanted, ()
    settled = copy.copy(wanted)
    settled["spec"] = spec | {name: _bare(there[name]) for name in kept if name in there}
    for name in kept:
        if name not in there:
            settled["spec"].pop(name)
    return settled, kept


def sealed(wanted: Object, owner: Owner) -> Object:
    """Return the object with its owner, and with the hash of what is applied."""
    bare = comparing.without_nulls(wanted)
    metadata = {**bare["metadata"], "ownerReferences": [owner.reference]}
    whole = {**bare, "metadata": metadata}
    annotations = {**metadata.get("annotations", {}), HASH: digest(whole)}
    return {**whole, "metadata": {**metadata, "annotations": annotations}}


def digest(value: Any) -> str:
    """Return a short hash of a value of JSON. Any: whatever the object holds."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def observed(applied: Object, answer: Object) -> Seen:
    """Remember how the API holds what was applied, so that a later edit is known as such."""
    made = digest(comparing.project(answer, applied))
    return Seen(answer["metadata"].get("uid", ""), _hash(applied), made)


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
    # Those of a chart without an operator have the labels, and are taken over; what the operator
    # itself runs on has them too where a cluster is called like it.
    return labels.get(COMPONENT_LABEL) == "operator" or not mine.items() <= labels.items()


def _cause(wanted: Object, live: Object | None, seen: Seen | None) -> str:
    if live is None:
        return "create"
    if _hash(live) != _hash(wanted):
        return "change"
    if seen is not None and seen.hash == _hash(wanted) and seen.uid == live["metadata"].get("uid"):
        # Whatever form the API gives to values, it is the form that it gave after the write.
        return "" if digest(comparing.project(live, wanted)) == seen.made else "repair"
    return "" if comparing.covers(wanted, live) else "repair"


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


# Any: the value of a field.
def _bare(value: Any) -> Any:
    """Return what may be sent back of a field that the API filled in."""
    if not isinstance(value, list):
        return value
    return [
        {key: held for key, held in element.items() if key != "status"}
        if isinstance(element, dict)
        else element
        for element in value
    ]
