from typing import Any

from caraway_operator.kube import planning
from caraway_operator.kube.kinds import Object, Ref, ref
from caraway_operator.kube.planning import HASH, Owner, Seen

OWNER = Owner("caraway.dev/v1alpha1", "CarawayCluster", "shop", "u-1")


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


def served(wanted: Object, **more: Any) -> Object:
    """The object as the API holds it once it was applied."""
    applied = planning.sealed(wanted, OWNER)
    metadata = applied["metadata"] | {"uid": f"uid-{wanted['metadata']['name']}"}
    return applied | {"metadata": metadata, "status": {}} | more


def seen(*written: Object) -> dict[Ref, Seen]:
    """What a process remembers that wrote these, and saw them as `served` holds them."""
    return {
        ref(each): planning.observed(planning.sealed(each, OWNER), served(each)) for each in written
    }


def live(*objects: Object) -> dict[Ref, Object]:
    return {ref(object_): object_ for object_ in objects}


def test_what_is_not_there_is_made_with_its_owner_and_the_hash_of_it() -> None:
    [write] = planning.plan([service()], {}, OWNER, {}).writes

    assert write.cause == "create"
    assert write.wanted["metadata"]["ownerReferences"] == [OWNER.reference]
    assert write.wanted["metadata"]["annotations"][HASH]
    assert write.wanted["spec"] == service()["spec"]


def test_what_is_as_it_should_be_is_not_written() -> None:
    known = seen(service())

    assert planning.plan([service()], live(served(service())), OWNER, known) == planning.Plan()
    assert planning.plan([service()], live(served(service())), OWNER, {}).writes[0].cause == "check"


def test_what_is_wanted_otherwise_is_written() -> None:
    [write] = planning.plan([service(1)], live(served(service(2))), OWNER, {}).writes

    assert (write.cause, write.wanted["spec"]["ports"][0]["port"]) == ("change", 1)


def test_what_was_edited_by_hand_is_repaired() -> None:
    edited = served(service(), spec=service(99)["spec"])

    [write] = planning.plan([service()], live(edited), OWNER, seen(service())).writes

    assert write.cause == "repair"


def test_what_the_api_allocates_and_metadata_of_others_is_no_edit() -> None:
    there = served(service())
    there["spec"] = {**there["spec"], "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}
    there["metadata"]["labels"] = {"a": "b", "added": "by hand"}

    assert not planning.plan([service()], live(there), OWNER, seen(service())).writes
    there["spec"]["externalIPs"] = ["192.0.2.1"]
    assert planning.plan([service()], live(there), OWNER, seen(service())).writes


def test_a_form_that_only_the_api_knows_is_no_edit_once_it_was_seen() -> None:
    wanted = service()
    rewritten = served(wanted, spec={"ports": [{"name": "http", "port": "http-alias"}]})
    known = {ref(wanted): planning.observed(planning.sealed(wanted, OWNER), rewritten)}

    assert not planning.plan([wanted], live(rewritten), OWNER, known).writes
    edited = rewritten | {"spec": {"ports": [{"name": "http", "port": 1}]}}
    assert planning.plan([wanted], live(edited), OWNER, known).writes[0].cause == "repair"


def test_an_object_that_was_made_anew_by_somebody_is_not_taken_for_the_one_that_was_seen() -> None:
    wanted = service()
    other = served(wanted)
    other["metadata"]["uid"] = "another"

    assert planning.plan([wanted], live(other), OWNER, seen(wanted)).writes[0].cause == "check"


def test_what_is_no_longer_wanted_is_removed_if_it_is_ours() -> None:
    foreign = served(service(name="foreign"))
    foreign["metadata"]["ownerReferences"][0]["uid"] = "somebody else"
    leaving = served(service(name="leaving"))
    leaving["metadata"]["deletionTimestamp"] = "now"

    plan = planning.plan([], live(served(service()), foreign, leaving), OWNER, {})

    assert plan.removals == (planning.Removal(Ref("Service", "ns", "shop"), "uid-shop"),)


def test_sizes_of_claims_stay_as_they_were_made_and_the_rest_is_written() -> None:
    there = served(stateful_set("10Gi"))
    there["spec"]["volumeClaimTemplates"][0]["status"] = {"phase": "Pending"}
    wanted = stateful_set("20Gi")
    wanted["spec"]["replicas"] = 3

    [write] = planning.plan([wanted], live(there), OWNER, {}).writes

    assert write.wanted["spec"] == stateful_set("10Gi")["spec"] | {"replicas": 3}


def test_what_is_being_deleted_is_waited_for() -> None:
    there = served(service())
    there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    found = planning.plan([service(1)], live(there), OWNER, {})

    assert (found.writes, found.leaving) == ((), (ref(service()),))


def test_what_must_wait_is_held_but_made_if_it_is_not_there() -> None:
    which = ref(service())

    held = planning.plan([service(1)], live(served(service(2))), OWNER, {}, [which])
    made = planning.plan([service(1)], {}, OWNER, {}, [which])

    assert (held.writes, held.held) == ((), (which,))
    assert made.writes[0].cause == "create"


def test_a_stranger_is_who_has_neither_the_owner_nor_the_labels() -> None:
    labels = {"app.kubernetes.io/name": "caraway", "app.kubernetes.io/instance": "shop"}
    wanted = planning.sealed(service() | {"metadata": {"name": "shop", "labels": labels}}, OWNER)

    def live(labels: dict[str, str], **metadata: Any) -> Object:
        return {"metadata": {"name": "shop", "labels": labels, **metadata}}

    mine = [OWNER.reference]
    assert planning.is_stranger(live({}), wanted)
    assert planning.is_stranger(live(labels | {"app.kubernetes.io/instance": "two"}), wanted)
    assert not planning.is_stranger(live(labels), wanted)
    assert not planning.is_stranger(live({}, ownerReferences=mine), wanted)
    # The account of an operator that is called like the cluster.
    operator = labels | {"app.kubernetes.io/component": "operator"}
    assert planning.is_stranger(live(operator), wanted)
    other = [{"kind": "CarawayCluster", "name": "shop", "uid": "earlier", "controller": True}]
    assert planning.is_stranger(live(labels, ownerReferences=other), wanted)
