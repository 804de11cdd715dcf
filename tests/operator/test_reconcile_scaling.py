from caraway_operator.kube.kinds import CLUSTER
from caraway_operator.scheduler_link import Target
from tests.operator.looking import Bench, bench


async def up(at: Bench, replicas: int = 3, **executor: object) -> None:
    at.create(executor={"replicas": replicas, **executor})
    await at.settle()
    assert at.status()["phase"] == "Ready"


async def test_more_executors_are_made_at_once() -> None:
    async with bench() as at:
        await up(at, 1)

        at.change(executor={"replicas": 4})
        await at.look()

        assert (at.replicas(), at.status()["phase"]) == (4, "Scaling")
        await at.settle()
        assert at.status()["executorsReady"] == "4/4"


async def test_executors_go_one_by_one_and_drain_first() -> None:
    async with bench() as at:
        await up(at)
        at.change(executor={"replicas": 1})

        await at.turn()
        assert (at.replicas(), at.status()["phase"]) == (3, "Scaling")
        assert at.status()["progress"]["drain"]["executor"] == "shop-executor-2"
        await at.turn()
        assert at.replicas() == 2
        await at.settle()

        assert at.link.asked == ["drain shop-executor-2", "drain shop-executor-1"]
        assert (at.replicas(), at.status()["phase"]) == (1, "Ready")
        assert "drain" not in at.status()["progress"]


async def test_a_drain_is_kept_before_it_is_asked_for() -> None:
    """Or a process that ends between the two leaves an executor without work for ever."""
    async with bench() as at:
        await up(at)
        kept: list[str] = []
        drain = at.link.drain

        async def look_first(target: Target, executor: str) -> None:
            kept.append(at.status()["progress"]["drain"]["executor"])
            await drain(target, executor)

        at.link.drain = look_first  # type: ignore[method-assign]
        at.change(executor={"replicas": 2})
        await at.turn()

        assert kept == ["shop-executor-2"]


async def test_a_busy_executor_is_waited_for_but_not_for_ever() -> None:
    async with bench() as at:
        await up(at, 2, drainTimeoutSeconds=60)
        at.link.busy.add("shop-executor-1")
        at.change(executor={"replicas": 1})

        for _ in range(10):
            await at.turn()
            assert at.replicas() == 2
        at.clock.now += 60
        await at.settle()

        assert at.replicas() == 1


async def test_a_drain_is_undone_when_the_wish_changes() -> None:
    async with bench() as at:
        await up(at)
        at.link.busy.add("shop-executor-2")
        at.change(executor={"replicas": 2})
        await at.turn()
        at.change(executor={"replicas": 3})

        await at.settle()

        assert at.link.asked == ["drain shop-executor-2", "undo shop-executor-2"]
        assert not at.link.draining
        assert (at.replicas(), at.status()["phase"]) == (3, "Ready")


async def test_an_undo_that_does_not_reach_the_schedulers_is_tried_again() -> None:
    async with bench() as at:
        await up(at)
        at.link.busy.add("shop-executor-2")
        at.change(executor={"replicas": 2})
        await at.turn()
        at.change(executor={"replicas": 3})
        at.link.is_away = True
        await at.turn()
        assert at.status()["progress"]["drain"]["executor"] == "shop-executor-2"
        at.link.is_away = False

        await at.settle()

        assert not at.link.draining


async def test_a_new_operator_goes_on_with_a_drain() -> None:
    async with bench() as at:
        await up(at)
        at.link.busy.add("shop-executor-2")
        at.change(executor={"replicas": 2})
        await at.turn()
        at.restart()
        at.change(executor={"replicas": 3})

        await at.settle()

        assert at.link.asked == ["drain shop-executor-2", "undo shop-executor-2"]


async def test_nothing_goes_while_no_scheduler_answers() -> None:
    async with bench() as at:
        await up(at)
        at.link.is_away = True
        at.change(executor={"replicas": 1})

        for _ in range(5):
            await at.turn()

        assert at.replicas() == 3


async def test_a_cluster_can_be_deleted_while_it_scales() -> None:
    async with bench() as at:
        await up(at)
        at.link.busy.add("shop-executor-2")
        at.change(executor={"replicas": 1})
        await at.turn()
        at.api.edit(CLUSTER.name, "shop", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        before = len(at.api.log)

        await at.look()

        assert at.status()["phase"] == "Deleting"
        assert at.api.log[before:] == ["PATCH CarawayCluster/shop/status"]


async def test_waiting_statements_add_executors_and_idleness_removes_them() -> None:
    async with bench() as at:
        await up(at, 1, minReplicas=1, maxReplicas=3)
        at.link.waiting = 100
        for _ in range(6):
            await at.turn()
        await at.settle()
        assert at.status()["executorsReady"] == "3/3"

        at.link.waiting = 0
        for _ in range(100):
            await at.turn()

        assert at.replicas() == 1
        assert at.status()["progress"]["executors"] == 1


async def test_a_new_operator_keeps_what_autoscaling_decided() -> None:
    async with bench() as at:
        await up(at, 1, minReplicas=1, maxReplicas=3)
        at.link.waiting = 100
        for _ in range(6):
            await at.turn()
        await at.settle()
        at.restart()

        await at.look()

        assert at.replicas() == 3


async def test_volumes_grow_where_statefulsets_cannot() -> None:
    async with bench() as at:
        await up(at, 1, cache={"size": "10Gi"})
        at.change(executor={"cache": {"size": "20Gi"}})

        await at.settle()

        claim = at.api.get("PersistentVolumeClaim", "data-shop-executor-0")
        assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
        assert at.condition("Reconciled")["status"] == "True"
