import base64

import pytest

from caraway_kube.api import errors
from caraway_kube.api.kinds import Object, ObjectRef
from caraway_operator.scheduler_client import PartView
from tests.operator.harness import MANIFEST, Harness, harness


def crashing(pod: Object) -> Object | None:
    if "executor-1" not in pod["metadata"]["name"]:
        return None
    return {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m"}}


async def test_unbound_volumes_are_reported() -> None:
    async with harness() as at:
        at.controllers.binds = False
        at.controllers.ill = lambda _pod: {"waiting": {"reason": "ContainerCreating"}}
        at.create()

        for _ in range(4):
            await at.step()

        assert at.status()["phase"] == "Pending"
        assert "has no volume (Pending)" in at.status()["message"]


async def test_a_crashing_executor_is_reported_and_the_others_serve() -> None:
    async with harness() as at:
        at.create(executor={"replicas": 3})
        await at.settle()
        at.controllers.ill = crashing
        await at.settle()

        assert at.status()["phase"] == "Degraded"
        assert at.condition("Ready")["reason"] == "CrashLoopBackOff"
        assert "pod shop-executor-1" in at.status()["message"]
        before = len(at.api.log)
        await at.step()
        assert len(at.api.log) == before


async def test_a_missing_redis_is_reported() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        at.controllers.ill = lambda pod: (
            {"waiting": {"reason": "ContainerCreating"}}
            if "shop-state" in pod["metadata"]["name"]
            else None
        )
        await at.settle()

        assert at.status()["phase"] == "Degraded"
        assert at.status()["message"] == "not ready: state 0/1"


async def test_evicted_pods_need_no_action_of_the_operator() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        at.api.remove("Pod", "shop-executor-1")
        at.controllers.step()
        before = [line for line in at.api.log if "status" not in line]

        await at.settle()

        assert [line for line in at.api.log if "status" not in line] == before
        assert at.status()["phase"] == "Ready"


async def test_changes_while_the_operator_was_down_are_applied() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        at.restart()
        at.api.remove("Service", "shop")
        at.api.edit("ConfigMap", "shop-manifest", data={"caraway.yaml": "edited"})
        at.change(executor={"replicas": 3})

        await at.settle()

        assert at.status()["executorsReady"] == "3/3"
        assert "shop" in at.api.names("Service")
        assert at.api.get("ConfigMap", "shop-manifest")["data"]["caraway.yaml"] != "edited"


async def test_a_rejected_object_does_not_stop_others_and_is_retried_with_delay() -> None:
    async with harness() as at:
        sent = 0

        def refuse(verb: str, which: ObjectRef) -> tuple[int, str] | None:
            nonlocal sent
            if which.kind != "PodDisruptionBudget" or verb != "POST":
                return None
            sent += 1
            return 403, "you may not"

        at.api.refuse = refuse
        at.create()
        for _ in range(10):
            await at.step()
            at.clock.now -= 4

        assert "shop-executor" in at.api.names("StatefulSet")
        told = at.condition("Reconciled")
        assert (told["status"], "you may not" in told["message"]) == ("False", True)
        assert sent <= 3

        at.api.refuse = lambda _verb, _which: None
        at.clock.now += 400
        await at.settle()
        assert at.condition("Reconciled")["status"] == "True"


async def test_an_unavailable_api_server_is_reported_and_retried_soon() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        at.change(executor={"replicas": 3})
        at.api.refuse = lambda verb, which: (
            (503, "etcd is away") if which.kind == "StatefulSet" and verb == "PUT" else None
        )

        outcome = await at.reconcile()

        assert (outcome.failed, outcome.requeue_after_s) == (True, 2)
        assert at.condition("Reconciled")["status"] == "False"
        at.api.refuse = lambda _verb, _which: None
        await at.settle()
        assert at.replicas() == 3


async def test_a_status_that_cannot_be_written_raises_an_error() -> None:
    async with harness() as at:
        at.create()
        at.api.refuse = lambda verb, which: (
            (403, "no") if which.kind == "CarawayCluster" and verb == "PATCH" else None
        )

        with pytest.raises(errors.RequestRejectedError):
            await at.reconcile()


async def test_secrets_of_an_earlier_cluster_with_the_name_are_not_used() -> None:
    async with harness() as at:
        owner = {"kind": "CarawayCluster", "uid": "earlier", "name": "shop", "controller": True}
        metadata = {"name": "shop-token", "ownerReferences": [owner]}
        at.api.put({"kind": "Secret", "metadata": metadata, "data": {}})
        at.create()

        outcome = await at.reconcile()

        assert (outcome.failed, at.api.names("StatefulSet")) == (True, [])
        assert "belongs to an earlier cluster" in at.condition("Reconciled")["message"]
        at.api.remove("Secret", "shop-token")
        await at.settle()
        assert at.status()["phase"] == "Ready"


LAKE = [{"name": "lake", "secretName": "lake-keys"}]
LACKING = "the Secret 'lake-keys' of the spec does not exist; create it"


def put_secret(at: Harness, value: str = "x") -> None:
    metadata = {"name": "lake-keys", "namespace": "web"}
    data = {"KEY": base64.b64encode(value.encode()).decode()}
    at.api.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


def template(at: Harness) -> object:
    return at.api.get("Deployment", "shop-scheduler")["spec"]["template"]


async def test_a_missing_secret_is_refused_before_a_rollout() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        before = template(at)

        at.change(secrets=LAKE, image={"tag": "2"})
        await at.settle()

        assert template(at) == before
        told = at.condition("SpecValid")
        assert (told["status"], told["message"]) == ("False", LACKING)
        assert at.condition("Ready")["status"] == "True"
        events = [each for which, each in at.api.there.items() if which.kind == "Event"]
        assert LACKING in [each["note"] for each in events]

        put_secret(at)
        await at.settle()
        assert template(at) != before
        assert at.condition("SpecValid")["status"] == "True"
        assert at.status()["phase"] == "Ready"


async def test_a_secret_that_is_deleted_later_changes_no_pod() -> None:
    async with harness() as at:
        put_secret(at)
        at.create(secrets=LAKE)
        await at.settle()
        before = template(at)

        at.api.remove("Secret", "lake-keys")
        at.api.remove("Service", "shop")
        for _ in range(3):
            await at.step()

        assert template(at) == before
        assert LACKING in at.condition("Reconciled")["message"]
        # The operator still looks after the cluster.
        assert at.api.get("Service", "shop")


async def test_a_new_value_of_a_secret_is_rolled_out_after_ten_seconds() -> None:
    async with harness() as at:
        put_secret(at)
        at.create(secrets=LAKE)
        await at.settle()
        before = template(at)
        at.clock.now += 10
        assert (await at.reconcile()).requeue_after_s <= 10

        put_secret(at, "new")
        began = at.clock.now
        # Events in between, such as changes of pods, do not put it off.
        for pause_s in (4, 5):
            at.clock.now = began + pause_s
            outcome = await at.reconcile()
            assert template(at) == before
        at.clock.now += outcome.requeue_after_s
        await at.reconcile()

        assert template(at) != before
        assert at.clock.now - began <= 10


async def test_a_view_of_an_unknown_table_is_refused_before_a_rollout() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        before = template(at)
        views = [{"name": "v", "sql": "SELECT * FROM no_such_table"}]

        at.change(manifest={**MANIFEST, "views": views})
        await at.settle()

        assert template(at) == before
        assert at.condition("SpecValid")["message"] == (
            "spec.manifest.views[0].sql: reads 'no_such_table', which is no dataset and no view "
            "of the manifest"
        )
        assert at.condition("Ready")["status"] == "True"


async def test_parts_in_error_are_reported_and_looked_at_again() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        assert at.condition("Loaded")["status"] == "True"
        at.schedulers.parts = [PartView("dataset orders (error)", "cannot connect")]

        outcome = await at.step()

        assert outcome.requeue_after_s <= 15
        assert at.condition("Loaded")["message"] == "dataset orders (error): cannot connect"
        assert (at.condition("Ready")["status"], at.status()["phase"]) == ("True", "Ready")
        at.schedulers.parts = []
        await at.step()
        assert at.condition("Loaded")["status"] == "True"


async def test_an_immutable_field_recreates_the_set_and_keeps_pods_and_claims() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        kept = {
            which: object_["metadata"]["uid"]
            for which, object_ in at.api.there.items()
            if which.kind in ("Pod", "PersistentVolumeClaim")
        }
        at.change(executor={"cache": {"storageClass": "other"}})
        await at.settle()

        made = at.api.get("StatefulSet", "shop-executor")
        assert made["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "other"
        assert kept == {which: at.api.there[which]["metadata"]["uid"] for which in kept}
        assert at.status()["phase"] == "Ready"


async def test_foreign_objects_are_neither_changed_nor_adopted() -> None:
    async with harness() as at:
        theirs = at.api.put(
            {"kind": "Service", "metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}}
        )
        at.create()
        for _ in range(3):
            await at.step()

        assert at.api.get("Service", "shop") == theirs
        told = at.condition("Reconciled")
        assert told["status"] == "False"
        assert (
            "Service 'shop': an object with this name exists and does not belong" in told["message"]
        )


async def test_objects_of_the_standalone_chart_are_adopted() -> None:
    async with harness() as at:
        labels = {"app.kubernetes.io/name": "caraway", "app.kubernetes.io/instance": "shop"}
        at.api.put({"kind": "ServiceAccount", "metadata": {"name": "shop", "labels": labels}})
        made = at.create()
        await at.settle()

        [owner] = at.api.get("ServiceAccount", "shop")["metadata"]["ownerReferences"]
        assert owner["uid"] == made["metadata"]["uid"]


async def test_a_foreign_certificate_is_not_overwritten() -> None:
    async with harness() as at:
        theirs = at.api.put({"kind": "Secret", "metadata": {"name": "shop-tls"}, "data": {}})
        at.create(tls={"enabled": True})
        await at.step()

        assert at.api.get("Secret", "shop-tls") == theirs
        assert "set spec.tls.secretName" in at.status()["message"]


async def test_an_evicted_scheduler_is_ignored_once_another_one_serves() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        [name] = [each for each in at.api.names("Pod") if "-scheduler-" in each]
        labels = at.api.get("Pod", name)["metadata"]["labels"]
        status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}
        metadata = {"name": "shop-scheduler-old", "labels": labels}
        at.api.put({"kind": "Pod", "metadata": metadata, "status": status})
        at.change(scheduler={"podLabels": {"team": "data"}})
        await at.reconcile()

        assert at.condition("RolledOut")["reason"] == "InProgress"


async def test_a_label_added_to_a_selector_is_removed() -> None:
    async with harness() as b:
        b.create()
        await b.settle()
        desired = b.api.get("Service", "shop")["spec"]["selector"]
        b.api.edit("Service", "shop", spec={"selector": {"x": "y"}})

        outcome = await b.reconcile()

        assert b.api.get("Service", "shop")["spec"]["selector"] == desired
        assert [str(each) for each in outcome.written.repaired] == ["Service web/shop"]
