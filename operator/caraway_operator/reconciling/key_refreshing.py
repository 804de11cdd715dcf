"""Has changed API keys reach the schedulers that run.

The kubelet writes changed Secrets into the volumes of a pod about once a minute, and at once when
an annotation of the pod changes. Schedulers look at the files every two seconds.
"""

from collections.abc import Iterable, Iterator

from caraway_kube import naming
from caraway_kube.api.kinds import Object
from caraway_operator.manifests import DesiredCluster, secrets


def refreshes(desired: DesiredCluster, pods: Iterable[Object]) -> Iterator[tuple[str, Object]]:
    """Yield the name and the patch of each scheduler pod whose API keys may be older."""
    seen = secrets.keys_checksum(desired)
    if seen is None:
        return
    for pod in pods:
        metadata = pod["metadata"]
        known = (metadata.get("annotations") or {}).get(naming.KEYS_CHECKSUM)
        if known != seen and not metadata.get("deletionTimestamp"):
            yield metadata["name"], {"metadata": {"annotations": {naming.KEYS_CHECKSUM: seen}}}
