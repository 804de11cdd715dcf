"""Rollouts from schedulers that refuse the operator."""

import pytest

from caraway_kube.api.kinds import Object
from tests.operator.harness import Harness, harness
from tests.operator.reconciling.rollout_images import images, up

REASON = "this route needs another proof"


def refuse_while_old(at: Harness) -> None:
    at.schedulers.refuses = lambda: REASON if "1" in images(at, "scheduler") else ""


def events(at: Harness, reason: str) -> list[str]:
    found = [at.api.get("Event", name) for name in at.api.names("Event")]
    return [each["note"] for each in found if each["reason"] == reason]


async def roll_out(at: Harness, rounds: int = 80) -> list[str]:
    """Roll out image 2; return the images of the executors after each step."""
    at.change(image={"tag": "2"})
    seen = []
    for _ in range(rounds):
        await at.step()
        seen.append(" ".join(images(at, "executor")))
        if at.status()["phase"] == "Ready" and images(at, "head") == ["2"]:
            return seen
    raise AssertionError(f"the rollout did not end: {at.condition('RolledOut')}")


async def test_a_refusal_is_a_condition_and_an_event() -> None:
    async with harness() as at:
        await up(at)
        assert at.condition("OperatorAccepted")["status"] == "True"
        at.schedulers.refuses = lambda: REASON

        await at.step()

        shown = at.condition("OperatorAccepted")
        assert (shown["status"], shown["reason"]) == ("False", "Refused")
        assert "a scheduler (of 1) refuses the operator: " in shown["message"]
        assert REASON in shown["message"]
        assert "--namespace web rollout restart deployment shop-scheduler" in shown["message"]
        assert shown["message"] in events(at, "OperatorRefused")
        assert at.condition("Ready")["status"] == "True"
        at.schedulers.is_away = True
        await at.step()
        assert at.condition("OperatorAccepted")["status"] == "False"
        at.schedulers.is_away, at.schedulers.refuses = False, lambda: ""
        await at.settle()
        assert at.condition("OperatorAccepted")["reason"] == "Accepted"


@pytest.mark.parametrize(("replicas", "is_slow"), [(1, True), (3, False)])
async def test_a_rollout_from_schedulers_that_refuse_comes_to_its_end(
    replicas: int, is_slow: bool
) -> None:
    async with harness() as at:
        at.controllers.is_slow = is_slow
        await up(at, replicas)
        await at.settle()
        refuse_while_old(at)

        seen = await roll_out(at)

        # No drain is requested until a scheduler answers. Its timeout would end the wait as well.
        assert at.schedulers.refused == []
        if replicas == 3:
            assert at.schedulers.asked == ["drain shop-executor-1", "drain shop-executor-0"]
        assert all(seen)
        assert at.condition("OperatorAccepted")["status"] == "True"
        assert at.condition("RolledOut")["status"] == "True"


async def test_a_new_executor_that_waits_for_new_schedulers_lets_the_rollout_go_on() -> None:
    async with harness() as at:
        await up(at)
        refuse_while_old(at)

        def waits(pod: Object) -> Object | None:
            is_new = pod["spec"]["containers"][0]["image"].endswith(":2")
            is_executor = "executor" in pod["metadata"]["name"]
            old = is_new and is_executor and "1" in images(at, "scheduler")
            return {"running": {}} if old else None

        at.controllers.ill = waits

        await roll_out(at)


async def test_a_new_executor_that_does_not_start_stops_the_rollout() -> None:
    async with harness() as at:
        await up(at)
        refuse_while_old(at)
        at.controllers.ill = lambda pod: (
            {"waiting": {"reason": "CrashLoopBackOff"}}
            if pod["spec"]["containers"][0]["image"].endswith(":2")
            else None
        )

        with pytest.raises(AssertionError, match="the rollout did not end"):
            await roll_out(at, 20)

        assert images(at, "executor") == ["1", "2"]
        assert images(at, "scheduler") == ["1"]


async def test_enough_executors_must_be_ready_before_one_is_replaced() -> None:
    async with harness() as at:
        await up(at, 3)
        refuse_while_old(at)
        at.controllers.ill = lambda pod: (
            {"waiting": {"reason": "ContainerCreating"}}
            if pod["metadata"]["name"] == "shop-executor-0"
            else None
        )
        at.controllers.step()
        at.change(image={"tag": "2"}, updateStrategy={"minReadyExecutors": 3})

        for _ in range(10):
            await at.step()

        assert images(at, "executor") == ["1", "1", "1"]
        assert "waiting for more ready executors" in at.condition("RolledOut")["message"]
