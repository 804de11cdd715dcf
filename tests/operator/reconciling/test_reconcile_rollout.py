import pytest

from tests.operator.harness import harness
from tests.operator.reconciling.rollout_images import bad_image, images, up


async def test_an_image_is_rolled_out_one_executor_at_a_time() -> None:
    async with harness() as at:
        await up(at)
        at.change(image={"tag": "2"})

        for _ in range(60):
            await at.step()
            ready = [
                name
                for name in at.api.names("Pod")
                if "executor" in name
                and at.api.get("Pod", name)["status"]["conditions"][0]["status"] == "True"
            ]
            assert len(ready) >= 1
            if at.status()["phase"] == "Ready" and images(at, "head") == ["2"]:
                break

        for part in ("executor", "scheduler", "state", "head"):
            assert set(images(at, part)) == {"2"}
        assert at.schedulers.asked == ["drain shop-executor-1", "drain shop-executor-0"]
        assert at.condition("RolledOut")["status"] == "True"
        await at.settle()


async def test_slow_pods_neither_stop_a_rollout_nor_get_deleted() -> None:
    async with harness() as at:
        at.controllers.is_slow = True
        await up(at, replicas=3)
        assert not [each for each in at.api.log if each.startswith("DELETE Pod")]

        at.change(image={"tag": "2"})
        stops = []
        for _ in range(80):
            await at.step()
            told = at.condition("RolledOut")
            stops += [told] if told["message"].startswith("stopped") else []
            if at.status()["phase"] == "Ready" and images(at, "head") == ["2"]:
                break

        assert {part: set(images(at, part)) for part in ("executor", "state")} == {
            "executor": {"2"},
            "state": {"2"},
        }
        assert not [each for each in stops if each["reason"] == "ProgressDeadlineExceeded"]
        await at.settle()


async def test_a_bad_image_stops_the_rollout_and_the_other_pods_serve() -> None:
    async with harness() as at:
        at.controllers.ill = bad_image
        await up(at)
        at.change(image={"tag": "bad"})

        for _ in range(20):
            await at.step()

        assert images(at, "executor") == ["1", "bad"]
        assert images(at, "scheduler") == images(at, "head") == images(at, "state") == ["1"]
        told = at.condition("RolledOut")
        assert (told["status"], told["reason"]) == ("False", "ImagePullBackOff")
        assert "pod shop-executor-1" in told["message"]
        assert at.status()["phase"] == "Degraded"
        reasons = [at.api.get("Event", name)["reason"] for name in at.api.names("Event")]
        assert "ImagePullBackOff" in reasons

        at.change(image={"tag": "1"})
        await at.settle()
        assert at.status()["phase"] == "Ready"


async def test_a_stopped_rollout_writes_nothing() -> None:
    async with harness() as at:
        at.controllers.ill = bad_image
        await up(at)
        at.change(image={"tag": "bad"})
        for _ in range(20):
            await at.step()
        before = len(at.api.log)

        for _ in range(5):
            await at.step()

        assert len(at.api.log) == before


async def test_a_restarted_operator_continues_a_rollout() -> None:
    async with harness() as at:
        await up(at, 3)
        at.change(image={"tag": "2"})
        for _ in range(60):
            await at.step()
            at.restart()
            if at.status()["phase"] == "Ready" and images(at, "head") == ["2"]:
                break

        assert set(images(at, "executor")) == {"2"}


async def test_a_single_executor_is_replaced_with_a_surge() -> None:
    async with harness() as at:
        await up(at, 1)
        at.change(image={"tag": "2"})

        await at.reconcile()

        assert at.replicas() == 2
        for _ in range(60):
            await at.step()
        assert (at.replicas(), images(at, "executor")) == (1, ["2"])
        assert at.status()["phase"] == "Ready"


async def test_a_new_manifest_replaces_only_the_schedulers() -> None:
    async with harness() as at:
        await up(at)
        pods = {name: at.api.get("Pod", name)["metadata"]["uid"] for name in at.api.names("Pod")}
        at.change(manifest={"name": "other"})

        await at.settle()

        kept = {
            name
            for name in at.api.names("Pod")
            if pods.get(name) == at.api.get("Pod", name)["metadata"]["uid"]
        }
        gone = set(pods) - kept
        assert [name.rpartition("-")[0].rpartition("-")[0] for name in gone] == ["shop-scheduler"]


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize("replicas", [1, 2])
async def test_ready_stays_true_while_a_rollout_serves(replicas: int, is_slow: bool) -> None:
    async with harness() as at:
        at.controllers.is_slow = is_slow
        await up(at, replicas)
        await at.settle()
        at.change(image={"tag": "2"})

        seen = []
        for _ in range(80):
            await at.step()
            seen.append(at.condition("Ready"))
            if at.status()["phase"] == "Ready" and images(at, "head") == ["2"]:
                break

        assert {each["status"] for each in seen} == {"True"}
        assert {each["reason"] for each in seen} == {"Serving", "AllReady"}
        assert (seen[-1]["reason"], images(at, "executor")) == ("AllReady", ["2"] * replicas)


async def test_ready_stays_true_if_a_rollout_stops_and_the_next_spec_is_invalid() -> None:
    async with harness() as at:
        at.controllers.ill = bad_image
        await up(at)
        seen = []
        for change in ({"image": {"tag": "bad"}}, {"manifest": {"name": "x", "datasets": 3}}):
            at.change(**change)
            for _ in range(10):
                await at.step()
                seen.append(at.condition("Ready")["status"])

        assert set(seen) == {"True"}
        assert at.condition("SpecValid")["status"] == "False"


async def test_a_cluster_that_serves_nothing_is_not_ready() -> None:
    async with harness() as at:
        await up(at)
        at.change(image={"tag": "2"})
        await at.step()
        at.controllers.ill = lambda _pod: {"waiting": {"reason": "CrashLoopBackOff"}}
        for name in at.api.names("Pod"):
            if "scheduler" in name:
                at.api.remove("Pod", name)

        for _ in range(3):
            await at.step()

        assert at.condition("Ready")["status"] == "False"
