"""The requests of the operator while the cluster does not change."""

from caraway_kube.api.kinds import ObjectRef
from caraway_operator.kube.lease import LeaderElection
from caraway_operator.reconciling.reconcile import RESYNC_S
from tests.operator.harness import Harness, harness

CLUSTERS = [f"shop-{number}" for number in range(3)]


async def settled(at: Harness) -> None:
    """Create the clusters, and reconcile them until nothing is written."""
    for name in CLUSTERS:
        at.create(name)
    for _ in range(10):
        before = at.api.version
        await at.observe()
        for name in CLUSTERS:
            await at.reconcile_observed(name)
        at.controllers.settle()
        if at.api.version == before:
            break
    assert {at.status(name)["phase"] for name in CLUSTERS} == {"Ready"}


async def test_settled_clusters_cost_nothing_but_the_lease_and_the_secrets() -> None:
    async with harness() as at:
        await settled(at)
        election = LeaderElection(at.kube, "caraway", "operator", "me", at.clock)
        assert await election.try_acquire()
        requests: list[tuple[str, str, str]] = []

        def record(verb: str, which: ObjectRef) -> None:
            requests.append((verb, which.kind, which.name))

        at.api.refuse = record
        written = len(at.api.log)

        # Ten minutes of regular reconciliations, without any change.
        for _ in range(10):
            at.clock.now += RESYNC_S
            assert await election.try_acquire()
            for name in CLUSTERS:
                result = await at.reconcile_observed(name)
                assert result.requeue_after_s == RESYNC_S

        assert set(at.api.log[written:]) == {"PATCH Lease/operator"}
        # Every request has a name, so nothing is listed. Only Secrets are read again.
        assert all(name for _, _, name in requests)
        assert {(verb, kind) for verb, kind, _ in requests} == {
            ("GET", "Lease"), ("PATCH", "Lease"), ("GET", "Secret"),
        }  # fmt: skip
