"""The deployer that writes objects to the Kubernetes API."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from caraway_core.errors import CarawayError, UnavailableError
from caraway_kube import naming
from caraway_kube.api import errors
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import CLUSTER, NAMESPACE, NODE, POD, Object
from caraway_kube.resources import quantities
from caraway_management.deployers.kubernetes import objects, observing
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

    async def apply(self, wanted: Wanted) -> None:
        """Apply the namespace of a project, and what is in it.

        Raises:
            RejectedError: the namespace is somebody else's, or Kubernetes refuses an object.
            UnavailableError: the API is away, or an earlier namespace is still being deleted.
        """
        name = objects.namespace_name(self._installation, wanted.project_id)
        with _answers():
            await self._check_namespace(name, wanted.project_id)
            await self._kube.apply(objects.namespace(wanted, self._installation))
            for each in objects.contents(wanted, self._installation):
                await self._kube.apply(each)

    async def observe(self, project_id: int) -> Observed:
        """Return what the operator says of the cluster of a project."""
        name = objects.namespace_name(self._installation, project_id)
        with _answers():
            try:
                cluster = await self._kube.get(CLUSTER, name, objects.CLUSTER)
            except errors.ObjectNotFoundError:
                return Observed(Phase.ABSENT)
            if (cluster.get("status") or {}).get("phase") == "Ready":
                return observing.observe(cluster, (), {})
            pods = await self._pods(name)
            largest = await self._largest_node() if observing.shortage(pods, {}) else {}
            return observing.observe(cluster, pods, largest)

    async def remove(self, project_id: int) -> None:
        """Delete the namespace of a project, and with it all that is in it."""
        name = objects.namespace_name(self._installation, project_id)
        with _answers():
            try:
                found = await self._kube.get(NAMESPACE, None, name)
            except errors.ObjectNotFoundError:
                return
            if self._is_ours(found, project_id):
                await self._kube.delete(NAMESPACE, None, name, found["metadata"]["uid"])

    async def instances(self, project_id: int) -> Sequence[Instance]:
        """Return the pods of a project's cluster."""
        with _answers():
            return observing.instances(
                await self._pods(objects.namespace_name(self._installation, project_id))
            )

    async def logs(self, project_id: int, instance: str, tail: int) -> Sequence[str] | None:
        """Return the last lines of a pod."""
        name = objects.namespace_name(self._installation, project_id)
        with _answers():
            # Only pods of the project's cluster have logs that its members may read.
            if instance not in [pod["metadata"]["name"] for pod in await self._pods(name)]:
                return None
            try:
                return (await self._kube.read_log(name, instance, tail)).splitlines()
            except errors.ObjectNotFoundError:
                return None

    async def run(self) -> None:
        """Do nothing: the operator and Kubernetes keep runtimes running."""

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

    async def _check_namespace(self, name: str, project_id: int) -> None:
        try:
            found = await self._kube.get(NAMESPACE, None, name)
        except errors.ObjectNotFoundError:
            return
        if not self._is_ours(found, project_id):
            raise RejectedError(
                "the namespace that the project would get exists already and belongs to somebody "
                "else; ask the administrator of the installation"
            )
        if found["metadata"].get("deletionTimestamp"):
            raise UnavailableError("the project's earlier runtime is being removed", _AWAY_S)

    def _is_ours(self, namespace: Object, project_id: int) -> bool:
        found = namespace["metadata"].get("labels") or {}
        return (
            found.get(objects.MANAGED_LABEL) == objects.MANAGER
            and found.get(objects.INSTALLATION_LABEL) == self._installation
            and found.get(objects.PROJECT_LABEL) == str(project_id)
        )


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
