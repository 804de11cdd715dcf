"""Limits that stand in ConfigMaps, for those who may not make `CarawayLimits`.

A ConfigMap with the label `caraway.dev/limits: "true"` holds the same fields, as YAML or JSON,
under the key `limits.yaml`.
"""

import logging
from collections.abc import Callable, Iterable

import yaml

from caraway_operator.known import Key, Known
from caraway_operator.kube.kinds import Kind, Object, Ref

logger = logging.getLogger(__name__)
SELECTOR = "caraway.dev/limits=true"
KEY = "limits.yaml"


class LimitMaps:
    """Takes what is watched, and keeps it beside the resources of the same purpose."""

    def __init__(self, known: Known, changed: Callable[[str], None]) -> None:
        self._known = known
        self._changed = changed

    def put(self, object_: Object) -> None:
        """Take a ConfigMap as it is now; one that cannot be read keeps what was said before."""
        which = _key(object_["metadata"]["namespace"], object_["metadata"]["name"])
        try:
            spec = yaml.safe_load((object_.get("data") or {}).get(KEY) or "{}")
        except yaml.YAMLError as exc:
            logger.warning(
                "limits cannot be read",
                extra={"config_map": "/".join(which), "reason": type(exc).__name__},
            )
            return
        self._known.limits[which] = {"metadata": object_["metadata"], "spec": spec}
        self._changed(which[0])

    def drop(self, which: Ref, uid: str = "") -> None:
        """Forget a ConfigMap."""
        if self._known.limits.pop(_key(which.namespace, which.name), None):
            self._changed(which.namespace)

    def replace(self, kind: Kind, namespaces: Iterable[str] | None, found: list[Object]) -> None:
        """Take a whole listing: what it does not name is gone."""
        there = {_key(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found}
        within = None if namespaces is None else set(namespaces)
        for namespace, name in list(self._known.limits):
            is_ours = name.startswith(_PREFIX) and (within is None or namespace in within)
            if is_ours and (namespace, name) not in there:
                self.drop(Ref(kind.name, namespace, name.removeprefix(_PREFIX)))
        for each in found:
            self.put(each)


_PREFIX = "ConfigMap/"


def is_map(which: Key) -> bool:
    """Tell whether limits are those of a ConfigMap."""
    return which[1].startswith(_PREFIX)


def _key(namespace: str, name: str) -> Key:
    return namespace, f"{_PREFIX}{name}"
