"""The deployer that writes objects to the Kubernetes API."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from caraway_core.errors import CarawayError, UnavailableError
from caraway_kube import naming
from caraway_kube.api import errors
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import CLUSTER, NAMESPACE, NODE, POD, Object
from caraway_kube.api.watching import ObjectWatcher
from caraway_kube.resources import quantities
from caraway_management.deployers import protocol
from caraway_management.deployers.kubernetes import objects, observing
from caraway_management.deployers.kubernetes.cluster_cache import ClusterCache
from caraway_management.deployers.protocol import Instance, RejectedError, Wanted
from caraway_management.domain.deployments import Observed, Phase

_AWAY_S = 5
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")


class KubernetesDeployer:
    """Deploys each project into a namespace of its own.

    `installation` tells the namespaces of several management services in one cluster apart. Their
    names begin with it.
    """

    def __init__(self, kube: KubeClient, installation: str) -> None:
        """Take the client and the name of the installation.

        Raises:
            CarawayError: namespaces cannot begin with the name.
        """
        if not _NAME.fullmatch(installation):
            raise CarawayError(
                f"the name '{installation[:40]}' of the installation cannot begin the names of "
                "namespaces; use at most 40 lower-case letters, digits and '-' with --installation"
            )
        self._kube = kube
        self._installation = installation
        self._clusters = ClusterCache()
        self._selector = naming.selector_text(
            {objects.MANAGED_LABEL: objects.MANAGER, objects.INSTALLATION_LABEL: installation}
        )
        self._watcher = ObjectWatcher(kube, CLUSTER, None, self._selector, self._clusters)

    async def apply(self, wanted: Wanted) -> None:
        """Apply the namespace of a project with its objects.

        Raises:
            RejectedError: the namespace is somebody else's, or Kubernetes refuses an object.
            UnavailableError: the API is away, or an earlier namespace is still being deleted.
        """
        name = objects.namespace_name(self._installation, wanted.project_id)
        with _answers():
            await self._check_namespace(name, wanted)
            await self._kube.apply(objects.namespace(wanted, self._installation))
            # The operator refuses a cluster whose Secrets do not exist.
            applied = [
                await self._kube.apply(each)
                for each in objects.contents(wanted, self._installation)
            ]
            cluster = objects.cluster(wanted, self._installation, applied)
            self._clusters.put(await self._kube.apply(cluster))

    async def observe(self, project_id: int, created: int | None = None) -> Observed:
        """Return what the operator says of the cluster of a project."""
        name = objects.namespace_name(self._installation, project_id)
        with _answers():
            cluster = await self._cluster(name)
            if cluster is None or not _is_of(cluster, created):
                return Observed(Phase.ABSENT)
            if (cluster.get("status") or {}).get("phase") == "Ready":
                return observing.observe(cluster, (), {})
            pods = await self._pods(name)
            largest = await self._largest_node() if observing.shortage(pods, {}) else {}
            return observing.observe(cluster, pods, largest)

    async def remove(self, project_id: int, created: int | None = None) -> None:
        """Delete the namespace of a project, and with it all that is in it."""
        name = objects.namespace_name(self._installation, project_id)
        with _answers():
            try:
                resource = await self._kube.get(NAMESPACE, None, name)
            except errors.ObjectNotFoundError:
                return
            if self._is_ours(resource, project_id) and _is_of(resource, created):
                await self._kube.delete(NAMESPACE, None, name, resource["metadata"]["uid"])

    async def project_ids(self) -> set[int]:
        """Return the projects that have a cluster of this installation."""
        with _answers():
            object_list = await self._kube.list(CLUSTER, None, self._selector)
        ids = [
            (each["metadata"]["labels"].get(objects.PROJECT_LABEL), each["metadata"])
            for each in object_list.items
        ]
        return {
            int(text) for text, metadata in ids
            if text and text.isdecimal() and not metadata.get("deletionTimestamp")
        }  # fmt: skip

    async def instances(self, project_id: int, created: int | None = None) -> Sequence[Instance]:
        """Return the pods of a project's cluster."""
        with _answers():
            return observing.instances(await self._pods_of(project_id, created))

    async def logs(
        self, project_id: int, instance: str, tail: int, created: int | None = None
    ) -> Sequence[str] | None:
        """Return the last lines of a pod."""
        name = objects.namespace_name(self._installation, project_id)
        with _answers():
            # Only pods of the project's cluster have logs that its members may read.
            pods = await self._pods_of(project_id, created)
            if instance not in [pod["metadata"]["name"] for pod in pods]:
                return None
            try:
                return (await self._kube.read_log(name, instance, tail)).splitlines()
            except errors.ObjectNotFoundError:
                return None

    async def run(self) -> None:
        """Watch the clusters. The operator and Kubernetes keep runtimes running."""
        await self._watcher.run_watch()

    @property
    def is_watching(self) -> bool:
        """True if `changed` names every deployment whose runtime has changed."""
        return self._watcher.is_live

    async def changed(self) -> set[int]:
        """Wait until clusters change, and return their deployments."""
        return await self._clusters.changed()

    async def _cluster(self, namespace: str) -> Object | None:
        """Return the cluster of a project: from the watch, or from the API while that is broken."""
        if self._watcher.is_live:
            return self._clusters.get(namespace)
        try:
            return await self._kube.get(CLUSTER, namespace, objects.CLUSTER)
        except errors.ObjectNotFoundError:
            return None

    async def _pods_of(self, project_id: int, created: int | None) -> list[Object]:
        name = objects.namespace_name(self._installation, project_id)
        cluster = await self._cluster(name)
        return await self._pods(name) if cluster and _is_of(cluster, created) else []

    async def _pods(self, namespace: str) -> list[Object]:
        selector = naming.selector_text(naming.cluster_selector(objects.CLUSTER))
        return (await self._kube.list(POD, namespace, selector)).items

    async def _largest_node(self) -> dict[str, float]:
        """Return the most CPU and memory that a node has; nothing without the right to look."""
        try:
            nodes = (await self._kube.list(NODE, None)).items
        except errors.RequestRejectedError:
            return {}
        allocatable = [(node.get("status") or {}).get("allocatable") or {} for node in nodes]
        return {
            name: max(float(quantities.number(str(each[name]))) for each in allocatable)
            for name in ("cpu", "memory")
            if allocatable and all(name in each for each in allocatable)
        }

    async def _check_namespace(self, name: str, wanted: Wanted) -> None:
        try:
            resource = await self._kube.get(NAMESPACE, None, name)
        except errors.ObjectNotFoundError:
            return
        if not (self._is_ours(resource, wanted.project_id) and _is_of(resource, wanted.created)):
            raise protocol.taken()
        if resource["metadata"].get("deletionTimestamp"):
            raise UnavailableError("the project's earlier runtime is being removed", _AWAY_S)

    def _is_ours(self, namespace: Object, project_id: int) -> bool:
        found = namespace["metadata"].get("labels") or {}
        return (
            found.get(objects.MANAGED_LABEL) == objects.MANAGER
            and found.get(objects.INSTALLATION_LABEL) == self._installation
            and found.get(objects.PROJECT_LABEL) == str(project_id)
        )


def _is_of(object_: Object, created: int | None) -> bool:
    """Return whether an object is of the project with the mark, and not of another of its id."""
    found = (object_["metadata"].get("labels") or {}).get(objects.CREATED_LABEL)
    return created is None or found in (None, str(created))


@contextmanager
def _answers() -> Iterator[None]:
    """Turn errors of the Kubernetes API into those of deployers."""
    try:
        yield
    except errors.ObjectInvalidError as exc:
        raise RejectedError("Kubernetes refuses the project's settings as invalid") from exc
    except errors.KubeError as exc:
        # Also a missing permission: an administrator can mend it while the deployment waits.
        raise UnavailableError(
            "Kubernetes does not answer as it should; try again", _AWAY_S
        ) from exc
