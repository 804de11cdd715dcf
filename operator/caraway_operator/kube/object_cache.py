"""A cache of the watched objects, as they were last observed."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from caraway_kube import naming
from caraway_kube.api.kinds import Object, ObjectRef, ResourceKind

Changed = Callable[[str, str], None]
"""Called with the namespace and the name of the cluster whose object has changed."""


class ObjectCache:
    """Watched objects by cluster. Answers to writes are stored here too."""

    def __init__(self, changed: Changed = lambda _namespace, _cluster: None) -> None:
        self.changed = changed
        self._all: dict[ObjectRef, Object] = {}
        self._of: defaultdict[tuple[str, str], dict[ObjectRef, Object]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._all)

    def of_cluster(self, namespace: str, cluster: str) -> dict[ObjectRef, Object]:
        """Return the objects of a cluster."""
        return dict(self._of.get((namespace, cluster), {}))

    def version(self, which: ObjectRef) -> str:
        """Return the version of a cached object, or '' if it is not cached."""
        resource = self._all.get(which)
        return str(resource["metadata"].get("resourceVersion", "")) if resource else ""

    def put(self, object_: Object) -> None:
        """Store an object, unless a newer version of it is cached."""
        which, home = _ref(object_), _home(object_)
        resource = self._all.get(which)
        if resource is not None and _version(resource) >= _version(object_):
            return
        if resource is not None and _home(resource) != home:
            # Its labels were edited. The cluster that it belonged to must restore them.
            self.drop(which)
        if home is None:
            return
        object_["metadata"].pop("managedFields", None)
        self._all[which] = self._of[home][which] = object_
        self.changed(*home)

    def drop(self, which: ObjectRef, uid: str = "") -> None:
        """Remove an object, unless another one has its name now."""
        resource = self._all.get(which)
        if resource is None or (uid and resource["metadata"].get("uid", uid) != uid):
            return
        del self._all[which]
        home = _home(resource)
        if home is not None:
            held = self._of[home]
            held.pop(which, None)
            if not held:
                del self._of[home]
            self.changed(*home)

    def replace(
        self, kind: ResourceKind, namespaces: Iterable[str] | None, found: list[Object]
    ) -> None:
        """Store the objects of a list, and remove those that are not in it."""
        listed = {_ref(object_) for object_ in found}
        within = None if namespaces is None else set(namespaces)
        gone = [
            which
            for which in self._all
            if which.kind == kind.name
            and which not in listed
            and (within is None or which.namespace in within)
        ]
        for which in gone:
            self.drop(which)
        for object_ in found:
            self.put(object_)


def _ref(object_: Object) -> ObjectRef:
    metadata = object_["metadata"]
    return ObjectRef(object_["kind"], metadata.get("namespace", ""), metadata["name"])


def _home(object_: Object) -> tuple[str, str] | None:
    metadata = object_["metadata"]
    labels = metadata.get("labels") or {}
    if labels.get(naming.NAME_LABEL) != "caraway" or naming.INSTANCE_LABEL not in labels:
        return None
    return metadata.get("namespace", ""), labels[naming.INSTANCE_LABEL]


def _version(object_: Object) -> int:
    # Officially opaque, but an increasing number in every existing API server.
    text = str(object_["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0
