"""Whatever somebody edits by hand of an object of the operator comes back to its declared form."""

import copy
import random
from collections.abc import Iterator

import pytest

from caraway_operator.kube import carrying
from caraway_operator.kube.kinds import OWNED, SERVICE_MONITOR, Object, Ref
from tests.kit.kube_edits import Edit, edits
from tests.kit.kube_rules import ApiError
from tests.operator.looking import Bench, bench

_KINDS = {kind.name for kind in OWNED}


def owned(at: Bench) -> dict[Ref, Object]:
    return {which: each for which, each in at.api.there.items() if which.kind in _KINDS}


def show(at: Bench, which: Ref) -> None:
    """Tell the operator of an object as its watch would, which sees what its selector lets by."""
    object_ = at.api.there.get(which)
    labels = (object_ or {"metadata": {}})["metadata"].get("labels") or {}
    if object_ is None or labels.get("app.kubernetes.io/name") != "caraway":
        at.objects.drop(which)
    else:
        at.objects.put(copy.deepcopy(object_))


def observe(at: Bench, which: Ref) -> None:
    """Take notice of a set's newest spec, as its controller does; pods stay as they are."""
    generation = at.api.there[which]["metadata"]["generation"]
    at.api.edit(which.kind, which.name, status={"observedGeneration": generation})


async def full(at: Bench) -> None:
    """Make a cluster that has every kind of object, with labels and a public Service."""
    at.api.serve(SERVICE_MONITOR)
    at.reconciler.kinds = frozenset({SERVICE_MONITOR.name})
    at.create(
        scheduler={"replicas": 2},
        monitoring={"serviceMonitor": True},
        service={"type": "LoadBalancer", "labels": {"team": "web"}, "annotations": {"a": "b"}},
    )
    await at.settle()


async def round_of(at: Bench, chosen: dict[Ref, Edit], declared: dict[Ref, Object]) -> list[str]:
    """Make one edit of each object, look at the cluster, and name what did not come back."""
    before = {which: copy.deepcopy(each) for which, each in owned(at).items()}
    for which, edit in list(chosen.items()):
        try:
            at.api.put(edit.on(before[which]))
        except ApiError:
            # The API does not let it be made.
            del chosen[which]
            continue
        if "template" in edit.on(before[which]).get("spec", {}):
            observe(at, which)
        show(at, which)
    at.clock.now += 61
    await at.reconciler.reconcile(at.cluster())
    await at.reconciler.reconcile(at.cluster())
    if away(at, chosen, declared):
        # A set whose form is taken for a new one waits for its pods, which its controller makes.
        await at.settle()
    return away(at, chosen, declared)


def away(at: Bench, chosen: dict[Ref, Edit], declared: dict[Ref, Object]) -> list[str]:
    return [
        f"{which.kind} {which.name}: {edit}"
        for which, edit in chosen.items()
        if which not in at.api.there
        or carrying.essence(at.api.there[which], declared[which])
        != carrying.essence(declared[which], declared[which])
    ]


def rounds(at: Bench, most: int | None) -> Iterator[dict[Ref, Edit]]:
    chooser = random.Random(12)
    lists = {}
    for which, object_ in owned(at).items():
        lists[which] = list(edits(object_))
        chooser.shuffle(lists[which])
    longest = max(map(len, lists.values()))
    for number in range(longest if most is None else most):
        yield {which: found[number] for which, found in lists.items() if number < len(found)}


@pytest.mark.parametrize("most", [25, pytest.param(None, marks=pytest.mark.full)])
async def test_every_edit_of_every_object_is_put_back(most: int | None) -> None:
    async with bench() as at:
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
        await at.look()
        assert at.api.version == before
        assert at.condition("Reconciled")["status"] == "True"


async def test_every_object_that_is_deleted_is_made_again() -> None:
    async with bench() as at:
        await full(at)
        for which, before in owned(at).items():
            before = copy.deepcopy(before)
            at.api.remove(which.kind, which.name, orphans=True)
            show(at, which)
            await at.reconciler.reconcile(at.cluster())

            after = at.api.there[which]
            assert carrying.essence(after, before) == carrying.essence(before, before), which


async def test_labels_and_annotations_that_are_added_stay() -> None:
    async with bench() as at:
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


async def test_a_port_that_was_edited_is_put_back_although_an_apply_would_be_refused() -> None:
    """Two ports of one name: `kubectl edit` changed the number, which is the key of the list."""
    async with bench() as at:
        await full(at)
        before = copy.deepcopy(at.api.get("Service", "shop")["spec"]["ports"])
        edited = [{**before[0], "port": 9999}, *before[1:]]
        at.api.edit("Service", "shop", spec={"ports": edited})

        await at.look()

        assert at.api.get("Service", "shop")["spec"]["ports"] == before
        assert at.condition("Ready")["status"] == "True"


async def test_a_budget_with_both_bounds_is_put_back() -> None:
    async with bench() as at:
        await full(at)
        spec = {"minAvailable": 2, "maxUnavailable": None}
        at.api.edit("PodDisruptionBudget", "shop-executor", spec=spec)

        await at.look()

        found = at.api.get("PodDisruptionBudget", "shop-executor")["spec"]
        assert (found.get("minAvailable"), found["maxUnavailable"]) == (None, 1)


async def test_a_service_that_cannot_be_put_right_makes_the_cluster_not_ready() -> None:
    async with bench() as at:
        await full(at)
        at.api.refuse = lambda verb, which: (
            (403, "you may not")
            if which == Ref("Service", "web", "shop") and verb == "PUT"
            else None
        )
        at.api.edit("Service", "shop", spec={"selector": {"app": "other"}})
        await at.look()

        ready = at.condition("Ready")
        assert (ready["status"], ready["reason"]) == ("False", "ServiceNotApplied")
        assert "Service 'shop'" in ready["message"]
        at.api.refuse = lambda _verb, _which: None
        # What is refused is tried again at once when the object changes, here: when it is deleted.
        at.api.remove("Service", "shop")
        await at.look()
        assert at.condition("Ready")["status"] == "True"


async def test_a_config_map_that_was_made_immutable_is_made_again() -> None:
    async with bench() as at:
        await full(at)
        before = at.api.get("ConfigMap", "shop-manifest")["metadata"]["uid"]
        at.api.edit("ConfigMap", "shop-manifest", immutable=True)
        await at.look()

        found = at.api.get("ConfigMap", "shop-manifest")
        assert found["metadata"]["uid"] != before and "immutable" not in found


async def test_an_object_with_a_finalizer_is_said_to_be_waited_for() -> None:
    async with bench() as at:
        await full(at)
        at.api.edit("Service", "shop", metadata={"finalizers": ["cloud/cleanup"]})
        at.api.remove("Service", "shop")
        await at.look()
        assert "it is being deleted" in at.condition("Reconciled")["message"]

        service = copy.deepcopy(at.api.get("Service", "shop"))
        del service["metadata"]["finalizers"]
        at.api.put(service)
        await at.look()

        assert "deletionTimestamp" not in at.api.get("Service", "shop")["metadata"]
        assert at.condition("Ready")["status"] == "True"


async def test_who_edits_without_end_is_named_and_not_fought_all_the_time() -> None:
    async with bench() as at:
        await full(at)
        puts = 0
        for number in range(20):
            at.api.edit("Service", "shop", spec={"externalIPs": [f"192.0.2.{number}"]})
            before = len(at.api.log)
            await at.look()
            puts += any(line == "PUT Service/shop" for line in at.api.log[before:])

        assert puts == 5
        assert "edited 5 times" in at.condition("Reconciled")["message"]
        at.clock.now += 61
        await at.look()
        assert "externalIPs" not in at.api.get("Service", "shop")["spec"]


async def test_events_name_each_object_each_time_and_once() -> None:
    def told(reason: str) -> list[str]:
        found = [at.api.get("Event", name) for name in at.api.names("Event")]
        return sorted(each["note"] for each in found if each["reason"] == reason)

    async with bench() as at:
        await full(at)
        objects = [*owned(at), *(which for which in at.api.there if which.kind == "Secret")]
        assert told("Created") == sorted(f"made {each.kind} {each.name}" for each in objects)
        for _ in range(2):
            at.api.edit("Service", "shop", spec={"externalIPs": ["192.0.2.1"]})
            await at.look()
            await at.look()
        assert len(told("Repaired")) == 2
        at.api.remove("Service", "shop-public")
        at.change(network={"policies": False})
        await at.settle()

        assert told("Created").count("made Service shop-public") == 2
        assert told("Removed") == [
            f"removed NetworkPolicy {name}" for name in ("shop", "shop-clients", "shop-metrics")
        ]


async def test_a_status_that_changes_meanwhile_is_no_edit() -> None:
    """A controller writes the status between the look and the write: nothing is repaired."""
    async with bench() as at:
        await full(at)
        at.restart()

        def refuse(verb: str, which: Ref) -> None:
            if verb == "PUT" and which.kind == "StatefulSet":
                at.api.refuse = lambda _verb, _ref: None
                at.api.edit(which.kind, which.name, status={"collisionCount": 1})

        at.api.refuse = refuse
        outcome = await at.look()

        assert at.api.get("StatefulSet", "shop-state")["status"].get("collisionCount") == 1
        assert (outcome.written.repaired, outcome.written.failures) == ((), ())
