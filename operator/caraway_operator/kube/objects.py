"""The objects that the operator watches, as it last saw them."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from caraway_operator import naming
from caraway_operator.kube.kinds import Kind, Object, Ref

Changed = Callable[[str, str], None]
"""Is told the namespace and the name of the cluster that something of changed."""


class Objects:
    """What is there, by the cluster that it belongs to; whoever writes puts the answer here."""

    def __init__(self, changed: Changed = lambda _namespace, _cluster: None) -> None:
        self.changed = changed
        self._all: dict[Ref, Object] = {}
        self._of: defaultdict[tuple[str, str], dict[Ref, Object]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._all)

    def of(self, namespace: str, cluster: str) -> dict[Ref, Object]:
        """Return what belongs to a cluster."""
        return dict(self._of.get((namespace, cluster), {}))

    def version(self, which: Ref) -> str:
        """Return the version of an object that is known; empty if it is not."""
        known = self._all.get(which)
        return str(known["metadata"].get("resourceVersion", "")) if known else ""

    def put(self, object_: Object) -> None:
        """Take an object as it is now; one that is older than what is known changes nothing."""
        which, home = _ref(object_), _home(object_)
        known = self._all.get(which)
        if known is not None and _version(known) >= _version(object_):
            return
        if known is not None and _home(known) != home:
            # Somebody edited its labels: the cluster that it was of has to make it anew.
            self.drop(which)
        if home is None:
            return
        object_["metadata"].pop("managedFields", None)
        self._all[which] = self._of[home][which] = object_
        self.changed(*home)

    def drop(self, which: Ref, uid: str = "") -> None:
        """Forget an object, unless another one has taken its name."""
        known = self._all.get(which)
        if known is None or (uid and known["metadata"].get("uid", uid) != uid):
            return
        del self._all[which]
        home = _home(known)
        if home is not None:
            held = self._of[home]
            held.pop(which, None)
            if not held:
                del self._of[home]
            self.changed(*home)

    def replace(self, kind: Kind, namespaces: Iterable[str] | None, found: list[Object]) -> None:
        """Take a whole listing: what it does not name is gone."""
        there = {_ref(object_) for object_ in found}
        within = None if namespaces is None else set(namespaces)
        gone = [
            which
            for which in self._all
            if which.kind == kind.name
            and which not in there
            and (within is None or which.namespace in within)
        ]
        for which in gone:
            self.drop(which)
        for object_ in found:
            self.put(object_)


def _ref(object_: Object) -> Ref:
    metadata = object_["metadata"]
    return Ref(object_["kind"], metadata.get("namespace", ""), metadata["name"])


def _home(object_: Object) -> tuple[str, str] | None:
    metadata = object_["metadata"]
    labels = metadata.get("labels") or {}
    if labels.get(naming.NAME_LABEL) != "caraway" or naming.INSTANCE_LABEL not in labels:
        return None
    return metadata.get("namespace", ""), labels[naming.INSTANCE_LABEL]


def _version(object_: Object) -> int:
    # Opaque by name, but a growing number in every API server there is.
    text = str(object_["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0
