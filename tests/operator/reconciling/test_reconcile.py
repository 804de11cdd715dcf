"""Reconciliations of a cluster in the emulated API: its objects and its status."""

import json
import logging
from typing import Any

import jsonschema
import pytest

from caraway_kube.api.kinds import CLUSTER, LIMITS, STATEFUL_SET
from caraway_kube.resources import crd
from tests.operator.harness import Harness, harness


def events(at: Harness) -> list[tuple[str, str]]:
    found = [at.api.get("Event", name) for name in at.api.names("Event")]
    return [(each["reason"], each["note"]) for each in found]


async def test_a_cluster_becomes_ready_and_is_then_unchanged() -> None:
    async with harness() as at:
        at.create()

        await at.settle()

        assert at.status()["phase"] == "Ready"
        assert at.status()["executorsReady"] == "2/2"
        assert set(at.api.names("StatefulSet")) == {"shop-executor", "shop-head", "shop-state"}
        before = len(at.api.log)
        outcome = await at.reconcile()
        assert len(at.api.log) == before
        assert outcome.requeue_after_s == 60


async def test_all_objects_are_deleted_with_the_cluster() -> None:
    async with harness() as at:
        made = at.create()
        await at.settle()

        for which, object_ in at.api.there.items():
            if which.kind in ("StatefulSet", "Service", "Secret", "ConfigMap", "NetworkPolicy"):
                [owner] = object_["metadata"]["ownerReferences"]
                assert owner["uid"] == made["metadata"]["uid"], which
                assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, True)

        at.api.remove(CLUSTER.name, "shop")
        assert not at.api.names("StatefulSet") and not at.api.names("Secret")


async def test_a_restarted_operator_changes_nothing() -> None:
    """It writes each object once, and the API server finds no difference."""
    async with harness() as at:
        at.create()
        await at.settle()
        at.restart()
        before = at.api.version

        await at.reconcile()
        sent = len(at.api.log)
        await at.reconcile()

        assert (at.api.version, len(at.api.log)) == (before, sent)


async def test_edits_are_reverted_and_reported() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        ports = at.api.get("Service", "shop-head")["spec"]["ports"]
        at.api.edit("Service", "shop-head", spec={"ports": [{**ports[0], "port": 6380}]})

        await at.settle()

        assert at.api.get("Service", "shop-head")["spec"]["ports"] == ports
        assert any(reason == "Repaired" for reason, _ in events(at))


async def test_deleted_objects_are_created_again() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        at.api.remove("Deployment", "shop-scheduler")

        await at.settle()

        assert at.status()["phase"] == "Ready"


async def test_objects_that_are_no_longer_desired_are_removed() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        assert at.api.names("NetworkPolicy")

        at.change(network={"policies": False})
        await at.settle()

        assert not at.api.names("NetworkPolicy")


async def test_secrets_are_created_once_and_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with harness() as at:
        at.create()
        await at.settle()
        kept = {name: at.api.get("Secret", name)["data"] for name in at.api.names("Secret")}
        at.change(executor={"replicas": 3})
        await at.settle()

        assert kept == {name: at.api.get("Secret", name)["data"] for name in kept}
        assert len([line for line in at.api.log if "Secret/" in line]) == len(kept)
        told = caplog.text + json.dumps([at.cluster(), events(at)])
        for data in kept.values():
            for value in data.values():
                assert value not in told


async def test_an_invalid_spec_is_reported_and_changes_nothing() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        before = len(at.api.log)
        at.change(manifest={"datasets": [{"name": "numbers"}]})

        await at.reconcile()

        assert at.condition("SpecValid")["status"] == "False"
        assert "spec.manifest.datasets[0]" in at.condition("SpecValid")["message"]
        assert at.condition("Ready")["status"] == "True"
        written = at.api.log[before:]
        assert all("status" in line or "Event" in line for line in written)


async def test_a_corrected_spec_is_applied() -> None:
    async with harness() as at:
        at.create(manifest={"kind": "nonsense"})
        await at.reconcile()
        assert (at.status()["phase"], at.api.names("StatefulSet")) == ("Failed", [])

        at.create()
        await at.settle()

        assert at.status()["phase"] == "Ready"


async def test_a_manifest_in_a_config_map_is_awaited_and_followed() -> None:
    async with harness() as at:
        text = "version: v1\nkind: Caraway\nname: shop\n"
        source = {"configMap": {"name": "mine", "key": "caraway.yaml"}}
        at.create(manifest=None, manifestFrom=source)
        await at.reconcile()
        assert (
            "the ConfigMap 'mine' with the key 'caraway.yaml' does not exist"
            in at.condition("SpecValid")["message"]
        )

        made = at.api.put(
            {"kind": "ConfigMap", "metadata": {"name": "mine"}, "data": {"caraway.yaml": text}}
        )
        at.clock.now += 20
        await at.settle()
        first = at.api.get("ConfigMap", "shop-manifest")["data"]["caraway.yaml"]
        at.api.put({**made, "data": {"caraway.yaml": text + "runtime: {ready_state: on_load}\n"}})
        at.clock.now += 20
        await at.reconcile()

        assert "name: shop" in first
        told = at.condition("SpecValid")
        assert told["status"] == "True" or "ConfigMap mine/caraway.yaml:4" in told["message"]


async def test_a_paused_cluster_is_unchanged() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        at.change(paused=True, executor={"replicas": 5})
        await at.reconcile()
        before = len(at.api.log)
        at.api.remove("Service", "shop-head")

        await at.reconcile()

        assert (at.status()["phase"], at.replicas()) == ("Paused", 2)
        assert (at.status()["executorsReady"], at.status()["executor"]["wanted"]) == ("2/2", 2)
        assert all("status" in line for line in at.api.log[before:])


async def test_a_stopped_cluster_has_no_pods_and_can_be_started() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        secret = at.api.get("Secret", "shop-token")["data"]

        at.change(stopped=True)
        await at.settle()
        assert (at.status()["phase"], at.api.names("Pod")) == ("Stopped", [])
        at.change(stopped=False)
        await at.settle()

        assert at.status()["phase"] == "Ready"
        assert at.api.get("Secret", "shop-token")["data"] == secret


async def test_a_cluster_deleted_unnoticed_is_forgotten_at_the_next_write() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        ghost = at.cluster()
        at.api.remove(CLUSTER.name, "shop")
        at.objects.replace(STATEFUL_SET, None, [])

        await at.reconciler.reconcile(ghost)

        assert not at.resources.clusters


async def test_two_clusters_in_a_namespace_are_independent() -> None:
    async with harness() as at:
        at.create("shop")
        at.create("shop-two")
        await at.settle(name="shop")
        await at.settle(name="shop-two")
        at.change("shop-two", network={"policies": False})
        await at.settle(name="shop-two")

        before = len(at.api.log)
        await at.reconcile("shop")

        assert len(at.api.log) == before
        assert at.status("shop")["phase"] == at.status("shop-two")["phase"] == "Ready"


async def test_limits_lower_values_and_report_it() -> None:
    async with harness() as at:
        at.create(executor={"replicas": 5})
        spec = {"replicas": 1}
        at.api.put({"kind": LIMITS.name, "metadata": {"name": "plan"}, "spec": spec})

        await at.settle()

        assert (at.replicas(), at.status()["phase"]) == (1, "Ready")
        told = at.condition("WithinLimits")
        assert (told["status"], told["reason"]) == ("False", "Clamped")
        assert "5 was lowered to 1" in told["message"]
        assert any(reason == "Clamped" for reason, _ in events(at))
        at.api.remove(LIMITS.name, "plan")
        await at.settle()
        assert (at.replicas(), at.condition("WithinLimits")["status"]) == (5, "True")


async def test_limits_refuse_additional_clusters() -> None:
    async with harness() as at:
        spec = {"apps": 1}
        at.api.put({"kind": LIMITS.name, "metadata": {"name": "plan"}, "spec": spec})
        at.create("shop")
        at.create("shop-two")
        await at.settle(name="shop")

        await at.reconcile("shop-two")

        assert at.condition("WithinLimits", "shop-two")["reason"] == "Refused"
        assert "shop-two-executor" not in at.api.names("StatefulSet")


async def test_certificates_are_created_kept_and_renewed() -> None:
    async with harness() as at:
        at.create(tls={"enabled": True})
        await at.settle()
        first = at.api.get("Secret", "shop-tls")["data"]
        authority = at.api.get("Secret", "shop-ca")["data"]
        assert at.status()["endpoints"]["http"].startswith("https://")

        at.clock.now += 100 * 86400
        await at.settle()
        assert at.api.get("Secret", "shop-tls")["data"] == first
        at.clock.now += 250 * 86400
        await at.settle()

        assert at.api.get("Secret", "shop-tls")["data"] != first
        assert at.api.get("Secret", "shop-ca")["data"] == authority
        assert at.status()["phase"] == "Ready"


async def test_the_status_has_only_fields_of_the_crd() -> None:
    """A dropped field would be written again in every reconciliation."""
    schema = crd.cluster()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    said = schema["properties"]["status"]
    async with harness() as at:
        at.create(executor={"replicas": 3}, tls={"enabled": True})
        await at.settle()
        at.schedulers.busy.add("shop-executor-2")
        at.change(executor={"replicas": 2})
        await at.step()

        assert at.status()["progress"]["drain"]
        assert unknown(at.status(), said) == []
        jsonschema.validate(at.status(), said)


def unknown(value: Any, schema: Any, path: str = "status") -> list[str]:
    """Return the fields that the API server would drop."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    if isinstance(value, dict):
        resources = schema.get("properties") or {}
        found = [f"{path}.{key}" for key in value if key not in resources]
        inner = (
            unknown(value[key], resources[key], f"{path}.{key}")
            for key in value
            if key in resources
        )
        return [*found, *(each for names in inner for each in names)]
    if isinstance(value, list):
        return [each for one in value for each in unknown(one, schema["items"], f"{path}[]")]
    return []


async def test_scaling_up_is_not_degraded_but_a_lost_pod_is() -> None:
    async with harness() as at:
        at.create(executor={"replicas": 2})
        await at.settle()
        pending = {"waiting": {"reason": "ContainerCreating"}}
        at.controllers.ill = lambda pod: pending if pod["metadata"]["name"][-1] == "2" else None
        at.change(executor={"replicas": 3}, scheduler={"replicas": 2})
        for _ in range(3):
            await at.step()
        assert (at.status()["phase"], at.status()["executorsReady"]) == ("Scaling", "2/3")

        at.controllers.ill = lambda pod: (
            pending if "-executor-" in pod["metadata"]["name"] else None
        )
        for _ in range(3):
            await at.step()
        assert at.status()["phase"] == "Failed"


async def test_nothing_is_rolled_out_without_pods() -> None:
    async with harness() as at:
        at.create()
        await at.reconcile()
        assert at.condition("RolledOut")["status"] == "False"
        await at.settle()
        assert at.condition("RolledOut")["status"] == "True"

        at.change(stopped=True)
        await at.settle()

        assert (at.status()["phase"], at.condition("RolledOut")["status"]) == ("Stopped", "False")
