"""The clusters of an installation, as a watch last reported them."""

import asyncio
from collections.abc import Iterable

from caraway_kube.api.kinds import Object, ObjectRef, ResourceKind
from caraway_management.deployers.kubernetes.objects import DEPLOYMENT_ANNOTATION


class ClusterCache:
    """Clusters by namespace, and the deployments whose clusters have changed."""

    def __init__(self) -> None:
        self._clusters: dict[str, Object] = {}
        self._changed: set[int] = set()
        self._news = asyncio.Event()

    def get(self, namespace: str) -> Object | None:
        """Return the cluster of a namespace."""
        return self._clusters.get(namespace)

    def put(self, object_: Object) -> None:
        """Store a cluster, unless this version of it or a newer one is there."""
        namespace = object_["metadata"]["namespace"]
        resource = self._clusters.get(namespace)
        if resource is not None and _is_known(object_, resource):
            return
        object_["metadata"].pop("managedFields", None)
        self._clusters[namespace] = object_
        self._note(object_)

    def drop(self, which: ObjectRef, uid: str = "") -> None:
        """Remove a cluster, unless another one has its place now."""
        resource = self._clusters.get(which.namespace)
        if resource is not None and uid in ("", resource["metadata"].get("uid")):
            self._note(self._clusters.pop(which.namespace))

    def replace(
        self, kind: ResourceKind, namespaces: Iterable[str] | None, found: list[Object]
    ) -> None:
        """Store the clusters of a list, and remove those that are not in it."""
        listed = {each["metadata"]["namespace"] for each in found}
        for namespace in self._clusters.keys() - listed:
            self._note(self._clusters.pop(namespace))
        for each in found:
            self.put(each)

    async def changed(self) -> set[int]:
        """Wait for changes, and return the deployments that the changed clusters are of."""
        await self._news.wait()
        self._news.clear()
        changed, self._changed = self._changed, set()
        return changed

    def _note(self, cluster: Object) -> None:
        annotations = cluster["metadata"].get("annotations") or {}
        text = str(annotations.get(DEPLOYMENT_ANNOTATION, ""))
        if text.isdecimal():
            self._changed.add(int(text))
            self._news.set()


def _is_known(one: Object, resource: Object) -> bool:
    if one["metadata"].get("uid") != resource["metadata"].get("uid"):
        return False
    versions = [str(each["metadata"].get("resourceVersion", "")) for each in (one, resource)]
    # Officially opaque, but an increasing number in every existing API server.
    return all(map(str.isdigit, versions)) and int(versions[0]) <= int(versions[1])
