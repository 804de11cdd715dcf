"""Emulates how the kubelet gives Secrets to pods, for the files of API keys.

A pod has the values of its start, until the kubelet looks at it again: once a minute, which tests
leave out, and when the pod itself changes.
"""

import base64

from caraway_kube.api.kinds import Object, ObjectRef
from caraway_kube.naming import COMPONENT_LABEL, SCHEDULER
from tests.kit.kube import Emulator


class Kubelet:
    """The API keys in the volumes of the schedulers of the emulator's home namespace."""

    def __init__(self, emulator: Emulator) -> None:
        self._api = emulator
        self._files: dict[str, tuple[str, frozenset[str]]] = {}
        """By the uid of the pod: its annotations when the kubelet looked last, and the keys."""

    def step(self) -> None:
        """Look at the pods that are new or have changed."""
        pods = {each["metadata"]["uid"]: each for each in self._pods()}
        self._files = {uid: found for uid, found in self._files.items() if uid in pods}
        for uid, pod in pods.items():
            annotations = str(pod["metadata"].get("annotations"))
            if uid not in self._files or self._files[uid][0] != annotations:
                self._files[uid] = (annotations, self._keys(pod))

    @property
    def keys(self) -> frozenset[str]:
        """The keys that every scheduler has."""
        each = [keys for _, keys in self._files.values()]
        return frozenset.intersection(*each) if each else frozenset()

    @property
    def uids(self) -> set[str]:
        """The schedulers that run."""
        return set(self._files)

    def _pods(self) -> list[Object]:
        return [
            pod
            for which, pod in self._api.there.items()
            if (which.kind, which.namespace) == ("Pod", self._api.home)
            and pod["metadata"]["labels"].get(COMPONENT_LABEL) == SCHEDULER
        ]

    def _keys(self, pod: Object) -> frozenset[str]:
        [volume] = [each for each in pod["spec"]["volumes"] if each["name"] == "caraway-api-keys"]
        found = set()
        for source in volume["projected"]["sources"]:
            secret = self._api.there[ObjectRef("Secret", self._api.home, source["secret"]["name"])]
            for item in source["secret"]["items"]:
                found.add(base64.b64decode(secret["data"][item["key"]]).decode())
        return frozenset(found)
