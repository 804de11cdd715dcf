"""Any manual edit of a managed object is reverted."""

import copy
import random
from collections.abc import Iterator

import pytest

from caraway_kube.api.kinds import OWNED, SERVICE_MONITOR, Object, ObjectRef
from caraway_operator.kube import merging
from tests.kit.kube_edits import Edit, edits
from tests.kit.kube_rules import ApiError
from tests.operator.harness import Harness, harness

_KINDS = {kind.name for kind in OWNED}


def owned(at: Harness) -> dict[ObjectRef, Object]:
    return {which: each for which, each in at.api.there.items() if which.kind in _KINDS}


def show(at: Harness, which: ObjectRef) -> None:
    """Pass an object to the cache as the watch would, which filters by label."""
    object_ = at.api.there.get(which)
    labels = (object_ or {"metadata": {}})["metadata"].get("labels") or {}
    if object_ is None or labels.get("app.kubernetes.io/name") != "caraway":
        at.objects.drop(which)
    else:
        at.objects.put(copy.deepcopy(object_))


def observe(at: Harness, which: ObjectRef) -> None:
    """Observe the newest spec of a workload, as its controller does. Pods do not change."""
    generation = at.api.there[which]["metadata"]["generation"]
    at.api.edit(which.kind, which.name, status={"observedGeneration": generation})


async def full(at: Harness) -> None:
    """Create a cluster with every kind of object, with labels and a public Service."""
    at.api.serve(SERVICE_MONITOR)
    at.reconciler.kinds = frozenset({SERVICE_MONITOR.name})
    at.create(
        scheduler={"replicas": 2},
        monitoring={"serviceMonitor": True},
        service={"type": "LoadBalancer", "labels": {"team": "web"}, "annotations": {"a": "b"}},
    )
    await at.settle()


async def round_of(
    at: Harness, chosen: dict[ObjectRef, Edit], declared: dict[ObjectRef, Object]
) -> list[str]:
    """Edit each object once, reconcile, and return the objects that were not restored."""
    before = {which: copy.deepcopy(each) for which, each in owned(at).items()}
    for which, edit in list(chosen.items()):
        try:
            at.api.put(edit.on(before[which]))
        except ApiError:
            # The API server rejects this edit.
            del chosen[which]
            continue
        if "template" in edit.on(before[which]).get("spec", {}):
            observe(at, which)
        show(at, which)
    at.clock.now += 61
    await at.reconciler.reconcile(at.cluster())
    await at.reconciler.reconcile(at.cluster())
    if away(at, chosen, declared):
        # A workload with an unobserved spec waits for its pods, which its controller creates.
        await at.settle()
    return away(at, chosen, declared)


def away(
    at: Harness, chosen: dict[ObjectRef, Edit], declared: dict[ObjectRef, Object]
) -> list[str]:
    return [
        f"{which.kind} {which.name}: {edit}"
        for which, edit in chosen.items()
        if which not in at.api.there
        or merging.essence(at.api.there[which], declared[which])
        != merging.essence(declared[which], declared[which])
    ]


def rounds(at: Harness, most: int | None) -> Iterator[dict[ObjectRef, Edit]]:
    chooser = random.Random(12)
    lists = {}
    for which, object_ in owned(at).items():
        lists[which] = list(edits(object_))
        chooser.shuffle(lists[which])
    longest = max(map(len, lists.values()))
    for number in range(longest if most is None else most):
        yield {which: found[number] for which, found in lists.items() if number < len(found)}


@pytest.mark.parametrize("most", [25, pytest.param(None, marks=pytest.mark.full)])
async def test_every_edit_of_every_object_is_reverted(most: int | None) -> None:
    async with harness() as at:
        await full(at)
        declared = copy.deepcopy(owned(at))
        failed: list[str] = []
        tried = 0
        for chosen in rounds(at, most):
            failed += await round_of(at, chosen, declared)
            tried += len(chosen)
        print(f"{tried} edits")

        assert not failed, "\n".join(failed)
        assert tried > 300
        before = at.api.version
        await at.reconcile()
        assert at.api.version == before
        assert at.condition("Reconciled")["status"] == "True"


async def test_every_deleted_object_is_created_again() -> None:
    async with harness() as at:
        await full(at)
        for which, before in owned(at).items():
            before = copy.deepcopy(before)
            at.api.remove(which.kind, which.name, orphans=True)
            show(at, which)
            await at.reconciler.reconcile(at.cluster())

            after = at.api.there[which]
            assert merging.essence(after, before) == merging.essence(before, before), which


async def test_added_labels_and_annotations_are_kept() -> None:
    async with harness() as at:
        await full(at)
        added = {"labels": {"by": "hand"}, "annotations": {"by": "hand"}}
        for which in owned(at):
            at.api.edit(which.kind, which.name, metadata=added, **(
                {"spec": {"externalIPs": ["192.0.2.1"]}} if which.kind == "Service" else {}
            ))  # fmt: skip
        await at.settle()

        for which, object_ in owned(at).items():
            metadata = object_["metadata"]
            assert (metadata["labels"]["by"], metadata["annotations"]["by"]) == ("hand", "hand")
            assert "externalIPs" not in (object_.get("spec") or {}), which


async def test_an_edited_port_is_reverted_although_an_apply_would_be_rejected() -> None:
    """`kubectl edit` changed the number, which is the merge key, so two ports have one name."""
    async with harness() as at:
        await full(at)
        before = copy.deepcopy(at.api.get("Service", "shop")["spec"]["ports"])
        edited = [{**before[0], "port": 9999}, *before[1:]]
        at.api.edit("Service", "shop", spec={"ports": edited})

        await at.reconcile()

        assert at.api.get("Service", "shop")["spec"]["ports"] == before
        assert at.condition("Ready")["status"] == "True"


async def test_a_budget_with_both_bounds_is_reverted() -> None:
    async with harness() as at:
        await full(at)
        spec = {"minAvailable": 2, "maxUnavailable": None}
        at.api.edit("PodDisruptionBudget", "shop-executor", spec=spec)

        await at.reconcile()

        found = at.api.get("PodDisruptionBudget", "shop-executor")["spec"]
        assert (found.get("minAvailable"), found["maxUnavailable"]) == (None, 1)


async def test_a_service_that_cannot_be_repaired_makes_the_cluster_not_ready() -> None:
    async with harness() as at:
        await full(at)
        at.api.refuse = lambda verb, which: (
            (403, "you may not")
            if which == ObjectRef("Service", "web", "shop") and verb == "PUT"
            else None
        )
        at.api.edit("Service", "shop", spec={"selector": {"app": "other"}})
        await at.reconcile()

        ready = at.condition("Ready")
        assert (ready["status"], ready["reason"]) == ("False", "ServiceNotApplied")
        assert "Service 'shop'" in ready["message"]
        at.api.refuse = lambda _verb, _which: None
        # A rejected write is retried at once when the object changes. Here it is deleted.
        at.api.remove("Service", "shop")
        await at.reconcile()
        assert at.condition("Ready")["status"] == "True"


async def test_an_immutable_config_map_is_recreated() -> None:
    async with harness() as at:
        await full(at)
        before = at.api.get("ConfigMap", "shop-manifest")["metadata"]["uid"]
        at.api.edit("ConfigMap", "shop-manifest", immutable=True)
        await at.reconcile()

        found = at.api.get("ConfigMap", "shop-manifest")
        assert found["metadata"]["uid"] != before and "immutable" not in found


async def test_an_object_with_a_finalizer_is_reported_as_terminating() -> None:
    async with harness() as at:
        await full(at)
        at.api.edit("Service", "shop", metadata={"finalizers": ["cloud/cleanup"]})
        at.api.remove("Service", "shop")
        await at.reconcile()
        assert "it is being deleted" in at.condition("Reconciled")["message"]

        service = copy.deepcopy(at.api.get("Service", "shop"))
        del service["metadata"]["finalizers"]
        at.api.put(service)
        await at.reconcile()

        assert "deletionTimestamp" not in at.api.get("Service", "shop")["metadata"]
        assert at.condition("Ready")["status"] == "True"


async def test_repeated_edits_are_reported_and_reverted_less_often() -> None:
    async with harness() as at:
        await full(at)
        puts = 0
        for number in range(20):
            at.api.edit("Service", "shop", spec={"externalIPs": [f"192.0.2.{number}"]})
            before = len(at.api.log)
            await at.reconcile()
            puts += any(line == "PUT Service/shop" for line in at.api.log[before:])

        assert puts == 5
        assert "edited 5 times" in at.condition("Reconciled")["message"]
        at.clock.now += 61
        await at.reconcile()
        assert "externalIPs" not in at.api.get("Service", "shop")["spec"]


async def test_each_change_of_an_object_has_one_event() -> None:
    def told(reason: str) -> list[str]:
        found = [at.api.get("Event", name) for name in at.api.names("Event")]
        return sorted(each["note"] for each in found if each["reason"] == reason)

    async with harness() as at:
        await full(at)
        objects = [*owned(at), *(which for which in at.api.there if which.kind == "Secret")]
        assert told("Created") == sorted(f"created {each.kind} {each.name}" for each in objects)
        for _ in range(2):
            at.api.edit("Service", "shop", spec={"externalIPs": ["192.0.2.1"]})
            await at.reconcile()
            await at.reconcile()
        assert len(told("Repaired")) == 2
        at.api.remove("Service", "shop-public")
        at.change(network={"policies": False})
        await at.settle()

        assert told("Created").count("created Service shop-public") == 2
        assert told("Removed") == [
            f"removed NetworkPolicy {name}" for name in ("shop", "shop-clients", "shop-metrics")
        ]


async def test_a_concurrent_status_update_is_no_edit() -> None:
    """A controller writes the status between read and write. This is not an edit to repair."""
    async with harness() as at:
        await full(at)
        at.restart()

        def refuse(verb: str, which: ObjectRef) -> None:
            if verb == "PUT" and which.kind == "StatefulSet":
                at.api.refuse = lambda _verb, _ref: None
                at.api.edit(which.kind, which.name, status={"collisionCount": 1})

        at.api.refuse = refuse
        outcome = await at.reconcile()

        assert at.api.get("StatefulSet", "shop-state")["status"].get("collisionCount") == 1
        assert (outcome.written.repaired, outcome.written.failures) == ((), ())
