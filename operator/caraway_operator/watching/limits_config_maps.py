"""Limits in ConfigMaps, for users who may not create `CarawayLimits`.

A ConfigMap with the label `caraway.dev/limits: "true"` has the same fields, as YAML or JSON,
under the key `limits.yaml`.
"""

import logging
from collections.abc import Callable, Iterable

import yaml

from caraway_kube.api.kinds import Object, ObjectRef, ResourceKind
from caraway_operator.watching.resource_cache import Key, ResourceCache

logger = logging.getLogger(__name__)
SELECTOR = "caraway.dev/limits=true"
KEY = "limits.yaml"


class LimitsConfigMaps:
    """Stores watched ConfigMaps as limits in the resource cache."""

    def __init__(self, resources: ResourceCache, changed: Callable[[str], None]) -> None:
        self._resources = resources
        self._changed = changed

    def put(self, object_: Object) -> None:
        """Store the limits of a ConfigMap. If it is malformed, its previous limits stay."""
        which = _key(object_["metadata"]["namespace"], object_["metadata"]["name"])
        try:
            spec = yaml.safe_load((object_.get("data") or {}).get(KEY) or "{}")
        except yaml.YAMLError as exc:
            logger.warning(
                "cannot read the limits",
                extra={"config_map": "/".join(which), "reason": type(exc).__name__},
            )
            return
        self._resources.limits[which] = {"metadata": object_["metadata"], "spec": spec}
        self._changed(which[0])

    def drop(self, which: ObjectRef, uid: str = "") -> None:
        """Remove the limits of a ConfigMap."""
        if self._resources.limits.pop(_key(which.namespace, which.name), None):
            self._changed(which.namespace)

    def replace(
        self, kind: ResourceKind, namespaces: Iterable[str] | None, found: list[Object]
    ) -> None:
        """Store the ConfigMaps of a list, and remove those that are not in it."""
        listed = {_key(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found}
        within = None if namespaces is None else set(namespaces)
        for namespace, name in list(self._resources.limits):
            is_ours = name.startswith(_PREFIX) and (within is None or namespace in within)
            if is_ours and (namespace, name) not in listed:
                self.drop(ObjectRef(kind.name, namespace, name.removeprefix(_PREFIX)))
        for each in found:
            self.put(each)


_PREFIX = "ConfigMap/"


def is_config_map(which: Key) -> bool:
    """Return whether limits come from a ConfigMap."""
    return which[1].startswith(_PREFIX)


def _key(namespace: str, name: str) -> Key:
    return namespace, f"{_PREFIX}{name}"
