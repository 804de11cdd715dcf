from caraway_kube.api.kinds import CLUSTER
from caraway_operator.scheduler_client import SchedulerEndpoint
from tests.operator.harness import Harness, harness


async def up(at: Harness, replicas: int = 3, **executor: object) -> None:
    at.create(executor={"replicas": replicas, **executor})
    await at.settle()
    assert at.status()["phase"] == "Ready"


async def test_executors_are_added_at_once() -> None:
    async with harness() as at:
        await up(at, 1)

        at.change(executor={"replicas": 4})
        await at.reconcile()

        assert (at.replicas(), at.status()["phase"]) == (4, "Scaling")
        await at.settle()
        assert at.status()["executorsReady"] == "4/4"


async def test_executors_are_drained_and_removed_one_by_one() -> None:
    async with harness() as at:
        await up(at)
        at.change(executor={"replicas": 1})

        await at.step()
        assert (at.replicas(), at.status()["phase"]) == (3, "Scaling")
        assert at.status()["progress"]["drain"]["executor"] == "shop-executor-2"
        await at.step()
        assert at.replicas() == 2
        await at.settle()

        assert at.schedulers.asked == ["drain shop-executor-2", "drain shop-executor-1"]
        assert (at.replicas(), at.status()["phase"]) == (1, "Ready")
        assert "drain" not in at.status()["progress"]


async def test_a_drain_is_stored_before_it_starts() -> None:
    """Otherwise a process that ends in between leaves an executor without work forever."""
    async with harness() as at:
        await up(at)
        kept: list[str] = []
        drain = at.schedulers.drain

        async def look_first(endpoint: SchedulerEndpoint, executor: str) -> None:
            kept.append(at.status()["progress"]["drain"]["executor"])
            await drain(endpoint, executor)

        at.schedulers.drain = look_first  # type: ignore[method-assign]
        at.change(executor={"replicas": 2})
        await at.step()

        assert kept == ["shop-executor-2"]


async def test_a_busy_executor_is_awaited_until_the_timeout() -> None:
    async with harness() as at:
        await up(at, 2, drainTimeoutSeconds=60)
        at.schedulers.busy.add("shop-executor-1")
        at.change(executor={"replicas": 1})

        for _ in range(10):
            await at.step()
            assert at.replicas() == 2
        at.clock.now += 60
        await at.settle()

        assert at.replicas() == 1


async def test_a_drain_is_cancelled_when_the_desired_number_rises() -> None:
    async with harness() as at:
        await up(at)
        at.schedulers.busy.add("shop-executor-2")
        at.change(executor={"replicas": 2})
        await at.step()
        at.change(executor={"replicas": 3})

        await at.settle()

        assert at.schedulers.asked == ["drain shop-executor-2", "undo shop-executor-2"]
        assert not at.schedulers.draining
        assert (at.replicas(), at.status()["phase"]) == (3, "Ready")


async def test_a_failed_cancellation_of_a_drain_is_retried() -> None:
    async with harness() as at:
        await up(at)
        at.schedulers.busy.add("shop-executor-2")
        at.change(executor={"replicas": 2})
        await at.step()
        at.change(executor={"replicas": 3})
        at.schedulers.is_away = True
        await at.step()
        assert at.status()["progress"]["drain"]["executor"] == "shop-executor-2"
        at.schedulers.is_away = False

        await at.settle()

        assert not at.schedulers.draining


async def test_a_restarted_operator_continues_a_drain() -> None:
    async with harness() as at:
        await up(at)
        at.schedulers.busy.add("shop-executor-2")
        at.change(executor={"replicas": 2})
        await at.step()
        at.restart()
        at.change(executor={"replicas": 3})

        await at.settle()

        assert at.schedulers.asked == ["drain shop-executor-2", "undo shop-executor-2"]


async def test_no_executor_is_removed_while_no_scheduler_answers() -> None:
    async with harness() as at:
        await up(at)
        at.schedulers.is_away = True
        at.change(executor={"replicas": 1})

        for _ in range(5):
            await at.step()

        assert at.replicas() == 3


async def test_a_cluster_can_be_deleted_while_it_scales() -> None:
    async with harness() as at:
        await up(at)
        at.schedulers.busy.add("shop-executor-2")
        at.change(executor={"replicas": 1})
        await at.step()
        at.api.edit(CLUSTER.name, "shop", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        before = len(at.api.log)

        await at.reconcile()

        assert at.status()["phase"] == "Deleting"
        assert at.api.log[before:] == ["PATCH CarawayCluster/shop/status"]


async def test_queued_statements_add_executors_and_idleness_removes_them() -> None:
    async with harness() as at:
        await up(at, 1, minReplicas=1, maxReplicas=3)
        at.schedulers.waiting = 100
        for _ in range(6):
            await at.step()
        await at.settle()
        assert at.status()["executorsReady"] == "3/3"

        at.schedulers.waiting = 0
        for _ in range(100):
            await at.step()

        assert at.replicas() == 1
        assert at.status()["progress"]["executors"] == 1


async def test_a_restarted_operator_keeps_the_decision_of_autoscaling() -> None:
    async with harness() as at:
        await up(at, 1, minReplicas=1, maxReplicas=3)
        at.schedulers.waiting = 100
        for _ in range(6):
            await at.step()
        await at.settle()
        at.restart()

        await at.reconcile()

        assert at.replicas() == 3


async def test_claims_are_expanded_although_statefulsets_are_immutable() -> None:
    async with harness() as at:
        await up(at, 1, cache={"size": "10Gi"})
        at.change(executor={"cache": {"size": "20Gi"}})

        await at.settle()

        claim = at.api.get("PersistentVolumeClaim", "data-shop-executor-0")
        assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
        assert at.condition("Reconciled")["status"] == "True"
