from typing import Any

from caraway_kube.api.kinds import Object, ObjectRef, ref
from caraway_operator.kube import planning
from caraway_operator.kube.planning import HASH, LastApplied, OwnerReference

OWNER = OwnerReference("caraway.dev/v1alpha1", "CarawayCluster", "shop", "u-1")


def service(port: int = 8090, name: str = "shop") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "ns", "labels": {"a": "b"}},
        "spec": {"ports": [{"name": "http", "port": port, "protocol": "TCP"}]},
    }


def stateful_set(size: str) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "shop-executor", "namespace": "ns"},
        "spec": {
            "replicas": 2,
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": {"resources": {"requests": {"storage": size}}},
                }
            ],
        },
    }


def served(desired: Object, **more: Any) -> Object:
    """The object as the API server stores it."""
    applied = planning.with_owner_and_hash(desired, OWNER)
    metadata = applied["metadata"] | {"uid": f"uid-{desired['metadata']['name']}"}
    return applied | {"metadata": metadata, "status": {}} | more


def seen(*written: Object) -> dict[ObjectRef, LastApplied]:
    """The records of a process that wrote these objects, which are stored as in `served`."""
    return {
        ref(each): planning.last_applied(planning.with_owner_and_hash(each, OWNER), served(each))
        for each in written
    }


def live(*objects: Object) -> dict[ObjectRef, Object]:
    return {ref(object_): object_ for object_ in objects}


def test_a_missing_object_is_created_with_owner_and_hash() -> None:
    [write] = planning.plan([service()], {}, OWNER, {}).writes

    assert write.cause == "create"
    assert write.desired["metadata"]["ownerReferences"] == [OWNER.reference]
    assert write.desired["metadata"]["annotations"][HASH]
    assert write.desired["spec"] == service()["spec"]


def test_an_object_in_its_desired_state_is_not_written() -> None:
    known = seen(service())

    assert planning.plan([service()], live(served(service())), OWNER, known) == planning.WritePlan()
    assert planning.plan([service()], live(served(service())), OWNER, {}).writes[0].cause == "check"


def test_a_changed_object_is_written() -> None:
    [write] = planning.plan([service(1)], live(served(service(2))), OWNER, {}).writes

    assert (write.cause, write.desired["spec"]["ports"][0]["port"]) == ("change", 1)


def test_an_edited_object_is_repaired() -> None:
    edited = served(service(), spec=service(99)["spec"])

    [write] = planning.plan([service()], live(edited), OWNER, seen(service())).writes

    assert write.cause == "repair"


def test_allocated_fields_and_foreign_metadata_are_no_edit() -> None:
    there = served(service())
    there["spec"] = {**there["spec"], "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}
    there["metadata"]["labels"] = {"a": "b", "added": "by hand"}

    assert not planning.plan([service()], live(there), OWNER, seen(service())).writes
    there["spec"]["externalIPs"] = ["192.0.2.1"]
    assert planning.plan([service()], live(there), OWNER, seen(service())).writes


def test_normalized_values_are_no_edit_once_they_were_stored() -> None:
    desired = service()
    rewritten = served(desired, spec={"ports": [{"name": "http", "port": "http-alias"}]})
    known = {
        ref(desired): planning.last_applied(planning.with_owner_and_hash(desired, OWNER), rewritten)
    }

    assert not planning.plan([desired], live(rewritten), OWNER, known).writes
    edited = rewritten | {"spec": {"ports": [{"name": "http", "port": 1}]}}
    assert planning.plan([desired], live(edited), OWNER, known).writes[0].cause == "repair"


def test_an_object_with_another_uid_is_checked_again() -> None:
    desired = service()
    other = served(desired)
    other["metadata"]["uid"] = "another"

    assert planning.plan([desired], live(other), OWNER, seen(desired)).writes[0].cause == "check"


def test_an_object_that_is_no_longer_desired_is_removed_if_it_is_owned() -> None:
    foreign = served(service(name="foreign"))
    foreign["metadata"]["ownerReferences"][0]["uid"] = "somebody else"
    terminating = served(service(name="leaving"))
    terminating["metadata"]["deletionTimestamp"] = "now"

    plan = planning.plan([], live(served(service()), foreign, terminating), OWNER, {})

    assert plan.removals == (
        planning.PlannedDeletion(ObjectRef("Service", "ns", "shop"), "uid-shop"),
    )


def test_claim_sizes_are_kept_and_other_fields_are_written() -> None:
    there = served(stateful_set("10Gi"))
    there["spec"]["volumeClaimTemplates"][0]["status"] = {"phase": "Pending"}
    desired = stateful_set("20Gi")
    desired["spec"]["replicas"] = 3

    [write] = planning.plan([desired], live(there), OWNER, {}).writes

    assert write.desired["spec"] == stateful_set("10Gi")["spec"] | {"replicas": 3}


def test_a_terminating_object_is_waited_for() -> None:
    there = served(service())
    there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    found = planning.plan([service(1)], live(there), OWNER, {})

    assert (found.writes, found.terminating) == ((), (ref(service()),))


def test_a_held_object_is_created_but_not_changed() -> None:
    which = ref(service())

    held = planning.plan([service(1)], live(served(service(2))), OWNER, {}, [which])
    made = planning.plan([service(1)], {}, OWNER, {}, [which])

    assert (held.writes, held.held) == ((), (which,))
    assert made.writes[0].cause == "create"


def test_an_object_without_the_owner_and_the_labels_is_foreign() -> None:
    labels = {"app.kubernetes.io/name": "caraway", "app.kubernetes.io/instance": "shop"}
    desired = planning.with_owner_and_hash(
        service() | {"metadata": {"name": "shop", "labels": labels}}, OWNER
    )

    def live(labels: dict[str, str], **metadata: Any) -> Object:
        return {"metadata": {"name": "shop", "labels": labels, **metadata}}

    mine = [OWNER.reference]
    assert planning.is_foreign(live({}), desired)
    assert planning.is_foreign(live(labels | {"app.kubernetes.io/instance": "two"}), desired)
    assert not planning.is_foreign(live(labels), desired)
    assert not planning.is_foreign(live({}, ownerReferences=mine), desired)
    # The account of an operator whose name is that of the cluster.
    operator = labels | {"app.kubernetes.io/component": "operator"}
    assert planning.is_foreign(live(operator), desired)
    other = [{"kind": "CarawayCluster", "name": "shop", "uid": "earlier", "controller": True}]
    assert planning.is_foreign(live(labels, ownerReferences=other), desired)
