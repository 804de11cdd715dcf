from tests.operator.looking import bench


async def test_a_cluster_comes_up_and_is_then_left_alone() -> None:
    async with bench() as at:
        at.create()

        await at.settle()

        assert at.status()["phase"] == "Ready"
        assert at.status()["executorsReady"] == "2/2"
        assert set(at.api.names("StatefulSet")) == {"shop-executor", "shop-head", "shop-state"}
        before = len(at.api.log)
        outcome = await at.look()
        assert len(at.api.log) == before
        assert outcome.again_s == 60
