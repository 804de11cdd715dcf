"""Emulates Kubernetes' controllers without delay: pods of sets, and their status."""

from collections.abc import Callable
from typing import Any

from caraway_kube.api.kinds import Object, ObjectRef
from caraway_operator.kube.planning import digest
from tests.kit.kube import Emulator

_UNSCHEDULED = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "pod has unbound immediate PersistentVolumeClaims",
        }
    ]
}
Ill = Callable[[Object], Object | None]
"""Returns the state of a pod's container if it does not run."""


class Controllers:
    """Updates the pods of an emulated API, one step per set at a time."""

    def __init__(self, emulator: Emulator) -> None:
        self._api = emulator
        self.ill: Ill = lambda _pod: None
        self.binds = True
        """True if claims are bound to volumes."""
        self.is_slow = False
        """As in a real cluster, a StatefulSet needs one step to stop a pod and one to start it, and
        the status reports the step before.
        """

    def step(self) -> bool:
        """Run each controller once; return whether anything changed."""
        before = self._api.version
        for which in [*self._api.there]:
            if which not in self._api.there:
                continue
            if which.kind == "StatefulSet":
                self._stateful(which)
            elif which.kind == "Deployment":
                self._deployment(which)
        return self._api.version != before

    def settle(self) -> None:
        """Run the controllers until nothing changes."""
        while self.step():
            pass

    def _stateful(self, which: ObjectRef) -> None:
        object_ = self._api.there[which]
        spec, status = object_["spec"], object_.get("status") or {}
        template = digest(spec["template"])
        partition = spec["updateStrategy"]["rollingUpdate"].get("partition", 0)
        current = status.get("currentRevision", template)
        replicas = spec["replicas"]
        pods = {
            int(each["metadata"]["name"].rpartition("-")[2]): each for each in self._pods(which)
        }
        if self.is_slow:
            if "observedGeneration" not in status and not pods:
                # Pods of a new set are visible before its first status.
                self._make(which, object_, pods, template, partition, current)
                return
            self._tell(which, object_, template, partition, current)
            for number in [number for number, pod in pods.items() if _is_leaving(pod)]:
                self._api.remove("Pod", pods.pop(number)["metadata"]["name"])
            for pod in pods.values():
                self._heal(pod)
        for number in sorted(pods, reverse=True):
            if number >= replicas:
                self._stop(pods, number)
        for number in sorted(pods, reverse=True):
            pod = pods[number]
            if number < partition or pod["metadata"]["labels"]["controller-revision-hash"] == (
                template
            ):
                if number >= partition and not _is_ready(pod):
                    break
                continue
            self._stop(pods, number)
            break
        self._make(which, object_, pods, template, partition, current)
        if self.is_slow:
            return
        for pod in pods.values():
            self._heal(pod)
        self._tell(which, object_, template, partition, current)

    def _stop(self, pods: dict[int, Object], number: int) -> None:
        name = pods[number]["metadata"]["name"]
        if self.is_slow:
            self._api.edit("Pod", name, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        else:
            self._api.remove("Pod", pods.pop(number)["metadata"]["name"])

    def _make(
        self,
        which: ObjectRef,
        object_: Object,
        pods: dict[int, Object],
        template: str,
        partition: int,
        current: str,
    ) -> None:
        for number in range(object_["spec"]["replicas"]):
            if number not in pods:
                revision = template if number >= partition else current
                pods[number] = self._pod(which, object_, f"{which.name}-{number}", revision)
                if self.is_slow:
                    self._api.edit("Pod", f"{which.name}-{number}", status=_UNSCHEDULED)

    def _tell(
        self, which: ObjectRef, object_: Object, template: str, partition: int, current: str
    ) -> None:
        found, replicas = self._pods(which), object_["spec"]["replicas"]
        updated = sum(
            each["metadata"]["labels"]["controller-revision-hash"] == template for each in found
        )
        if updated == replicas and not partition:
            current = template
        self._status(object_, found, updated, currentRevision=current, updateRevision=template)

    def _deployment(self, which: ObjectRef) -> None:
        object_ = self._api.there[which]
        template, replicas = digest(object_["spec"]["template"])[:10], object_["spec"]["replicas"]
        pods = self._pods(which)
        new = [
            each for each in pods if each["metadata"]["name"].startswith(f"{which.name}-{template}")
        ]
        old = [each for each in pods if each not in new]
        if len(new) < replicas and len(pods) < replicas + 1:
            name = f"{which.name}-{template}-{len(new)}"
            new.append(self._pod(which, object_, name, template))
        for pod in new:
            self._heal(pod)
        ready = sum(_is_ready(self._api.get("Pod", each["metadata"]["name"])) for each in new)
        for pod in old[: max(0, ready + len(old) - replicas)]:
            self._api.remove("Pod", pod["metadata"]["name"])
        for pod in new[replicas:]:
            self._api.remove("Pod", pod["metadata"]["name"])
        found = self._pods(which)
        updated = sum(
            each["metadata"]["name"].startswith(f"{which.name}-{template}") for each in found
        )
        self._status(object_, found, updated)

    def _pods(self, which: ObjectRef) -> list[Object]:
        uid = self._api.there[which]["metadata"]["uid"]
        return [
            self._api.there[each]
            for each in sorted(self._api.owned.get(uid, ()))
            if each.kind == "Pod"
        ]

    def _pod(self, which: ObjectRef, owner: Object, name: str, revision: str) -> Object:
        template = owner["spec"]["template"]
        for claim in owner["spec"].get("volumeClaimTemplates") or ():
            self._claim(f"{claim['metadata']['name']}-{name}", claim)
        reference = {"uid": owner["metadata"]["uid"], "kind": which.kind, "name": which.name,
                     "apiVersion": "apps/v1", "controller": True}  # fmt: skip
        labels = {**template["metadata"]["labels"], "controller-revision-hash": revision}
        return self._api.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": which.namespace, "labels": labels,
                             "ownerReferences": [reference]},
                "spec": template["spec"],
                "status": {"podIP": "10.0.0.1"},
            }
        )  # fmt: skip

    def _claim(self, name: str, template: Object) -> None:
        if ObjectRef("PersistentVolumeClaim", self._api.home, name) in self._api.there:
            return
        labels = template["metadata"].get("labels") or {}
        self._api.put(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": self._api.home, "labels": labels},
                "spec": template["spec"],
                "status": {"phase": "Bound" if self.binds else "Pending"},
            }
        )

    def _heal(self, pod: Object) -> None:
        ill = self.ill(pod)
        shown = ill or {"running": {}}
        state: dict[str, Any] = {"name": "main", "state": shown, "started": "running" in shown}
        status = {
            "conditions": [{"type": "Ready", "status": "False" if ill else "True"}],
            "containerStatuses": [state],
        }
        self._set_status(pod, status)

    def _status(self, object_: Object, pods: list[Object], updated: int, **more: str) -> None:
        fresh = [self._api.get("Pod", each["metadata"]["name"]) for each in pods]
        status = {
            "observedGeneration": object_["metadata"]["generation"],
            "replicas": len(fresh),
            "readyReplicas": sum(map(_is_ready, fresh)),
            "updatedReplicas": updated,
            **more,
        }
        self._set_status(object_, status)

    def _set_status(self, object_: Object, status: Object) -> None:
        known = object_.get("status") or {}
        if any(known.get(key) != value for key, value in status.items()):
            self._api.edit(object_["kind"], object_["metadata"]["name"], status=status)


def _is_leaving(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
