"""Generates manual edits of an object from the object itself."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from caraway_kube.api.kinds import Object

Path = tuple[str | int, ...]
_LEFT_OUT = {"apiVersion", "kind", "status"}
_OF_SERVER = {"uid", "resourceVersion", "generation", "creationTimestamp", "name", "namespace"}
_ADDED: dict[str, dict[str, Any]] = {
    "ConfigMap": {"binaryData": {"x": "eA=="}, "immutable": True},
    "PodDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1},
    "Service": {
        "externalIPs": ["192.0.2.1"],
        "sessionAffinity": "ClientIP",
        "publishNotReadyAddresses": True,
        "type": "NodePort",
    },
    "Deployment": {"paused": True, "minReadySeconds": 30},
    "StatefulSet": {"minReadySeconds": 30, "ordinals": {"start": 1}},
    "NetworkPolicy": {"egress": [{}], "ingress": [{}]},
}
"""Fields to add by hand: on the object for ConfigMaps, otherwise in `spec`."""
_POD = {
    "hostNetwork": True,
    "initContainers": [{"name": "by-hand", "image": "x"}],
    "nodeSelector": {"by": "hand"},
    "tolerations": [{"operator": "Exists"}],
}


@dataclass(frozen=True)
class Edit:
    """One change at a path; `how` is change, remove, add or repeat."""

    how: str
    path: Path
    value: Any = None

    def on(self, object_: Object) -> Object:
        """Return a copy of the object with the edit applied."""
        edited = copy.deepcopy(object_)
        at: Any = edited
        for step in self.path[:-1]:
            at = at[step]
        if self.how == "remove":
            del at[self.path[-1]]
        elif self.how == "repeat":
            at[self.path[-1]].append(self.value)
        else:
            at[self.path[-1]] = self.value
        return edited


def edits(object_: Object) -> Iterator[Edit]:
    """Yield edits of every field: changed, removed, added, or with a list item repeated."""
    for key, value in object_.items():
        if key not in _LEFT_OUT:
            yield from _within((key,), value)
    spec: Path = () if object_["kind"] == "ConfigMap" else ("spec",)
    for name, value in _ADDED.get(object_["kind"], {}).items():
        yield Edit("add", (*spec, name), value)
    if "template" in (object_.get("spec") or {}):
        for name, value in _POD.items():
            yield Edit("add", ("spec", "template", "spec", name), value)


def _within(path: Path, value: Any) -> Iterator[Edit]:
    match value:
        case dict():
            for key, held in value.items():
                if path == ("metadata",) and key in _OF_SERVER:
                    continue
                yield Edit("remove", (*path, key))
                yield from _within((*path, key), held)
        case list():
            for index, held in enumerate(value):
                yield Edit("remove", (*path, index))
                if path == ("metadata", "ownerReferences"):
                    # The garbage collector deletes objects whose owner does not exist.
                    continue
                yield from _within((*path, index), held)
            if value:
                yield Edit("repeat", path, _other(value[-1]))
        case _:
            yield Edit("change", path, _other(value))


def _other(value: Any) -> Any:
    """Return a different value of the same shape, also in merge keys."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"{value}x"
        case dict():
            return {key: _other(held) for key, held in value.items()}
        case list():
            return [_other(each) for each in value]
    return value
