import base64
from typing import Any

from caraway_kube import naming
from caraway_operator.reconciling.patches import VolumeExpansion, expansions
from tests.operator.harness import Harness, harness

KEYS: dict[str, Any] = {
    "auth": {"apiKeys": [{"name": "keys", "key": "one"}]},
    "scheduler": {"replicas": 2},
}


def stateful_set(size: str) -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": size}}}
    templates = [{"metadata": {"name": "data"}, "spec": spec}]
    return {
        "kind": "StatefulSet",
        "metadata": {"name": "shop-executor"},
        "spec": {"volumeClaimTemplates": templates},
    }


def claim(name: str, size: str, **metadata: str) -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def test_only_claims_that_are_too_small_are_expanded() -> None:
    claims = [
        claim("data-shop-executor-0", "10Gi"),
        claim("data-shop-executor-1", "20480Mi"),
        claim("data-shop-executor-2", "30Gi"),
        claim("data-shop-executor-3", "10Gi", deletionTimestamp="now"),
        claim("data-other-executor-0", "1Gi"),
    ]

    assert expansions([stateful_set("20Gi")], claims) == [
        VolumeExpansion("data-shop-executor-0", "20Gi")
    ]
    assert VolumeExpansion("x", "20Gi").patch == {
        "spec": {"resources": {"requests": {"storage": "20Gi"}}}
    }


def put_secret(run: Harness, value: str, name: str = "keys") -> None:
    data = {"one": base64.b64encode(value.encode()).decode()}
    run.api.put(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "web"},
         "type": "Opaque", "data": data}
    )  # fmt: skip


def pods(run: Harness) -> dict[str, str]:
    """Return the uid of each pod."""
    return {name: run.api.get("Pod", name)["metadata"]["uid"] for name in run.api.names("Pod")}


def marks(run: Harness) -> dict[str, Any]:
    """Return the checksum of the keys that each pod has been given."""
    found = {}
    for name in run.api.names("Pod"):
        annotations = run.api.get("Pod", name)["metadata"].get("annotations") or {}
        found[name] = annotations.get(naming.KEYS_CHECKSUM)
    return found


def refer(run: Harness, version: str) -> None:
    run.api.edit("CarawayCluster", "shop", metadata={"annotations": {naming.REFERENCES: version}})


async def test_changed_keys_refresh_schedulers_and_replace_no_pod() -> None:
    async with harness() as run:
        put_secret(run, "first")
        run.create(**KEYS)
        await run.settle()
        before, first = pods(run), marks(run)
        assert {name for name, mark in first.items() if mark} == {
            name for name in before if "-scheduler-" in name
        }
        put_secret(run, "second")
        # Nothing says that the Secret has changed, and it was read a moment ago.
        run.clock.now -= 60
        run.reconciler._caches["web", "shop"].read_at = run.clock.now
        await run.reconcile()
        assert marks(run) == first
        refer(run, "2")
        await run.reconcile()
        second = marks(run)
        assert all(second[name] != mark for name, mark in first.items() if mark)
        await run.settle()
        assert (pods(run), marks(run)) == (before, second)


async def test_keys_that_change_unannounced_are_seen_when_they_are_read_again() -> None:
    async with harness() as run:
        put_secret(run, "first")
        run.create(**KEYS)
        await run.settle()
        before, first = pods(run), marks(run)
        put_secret(run, "second")
        await run.settle()
        assert pods(run) == before
        assert marks(run) != first


async def test_a_secret_that_is_read_for_something_else_too_replaces_pods() -> None:
    async with harness() as run:
        put_secret(run, "first")
        run.create(**KEYS, secrets=[{"name": "shop", "secretName": "keys"}])
        await run.settle()
        before = pods(run)
        put_secret(run, "second")
        refer(run, "2")
        await run.settle()
        after = pods(run)
        replaced = {name for name in before if name not in after or after[name] != before[name]}
        assert len(replaced) == 2 and all("-scheduler-" in name for name in replaced)


async def test_pods_that_cannot_be_annotated_are_a_failure_and_are_tried_again() -> None:
    async with harness() as run:
        put_secret(run, "first")
        run.create(**KEYS)
        await run.settle()
        put_secret(run, "second")
        refer(run, "2")
        first = marks(run)
        run.api.refuse = lambda verb, ref: (
            (403, "forbidden") if (verb, ref.kind) == ("PATCH", "Pod") else None
        )
        await run.reconcile()
        assert marks(run) == first
        assert "cannot be given changed API keys" in str(run.status())
        run.api.refuse = lambda verb, ref: None
        await run.settle()
        assert marks(run) != first
