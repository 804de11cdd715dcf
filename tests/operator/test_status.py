from dataclasses import replace
from typing import Any

import pytest

from caraway_operator import progress, status
from caraway_operator.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.pods import PodView, SetView, Trouble
from caraway_operator.progress import Progress
from caraway_operator.scaling.draining import Drain
from caraway_operator.status import Facts

WISH = {EXECUTOR: 2, SCHEDULER: 1, HEAD: 1, STATE: 1}
CRASH = Trouble("CrashLoopBackOff", "pod shop-executor-1: CrashLoopBackOff: exit code 1")


def a_set(component: str, wanted: int, ready: int | None = None) -> SetView:
    ready = wanted if ready is None else ready
    return SetView(f"shop-{component}", wanted, wanted, ready, wanted, True, "t")


def facts(**ready: int) -> Facts:
    sets = {name: a_set(name, wanted, ready.get(name)) for name, wanted in WISH.items()}
    return Facts("shop", "web", 3, wish=WISH, sets=sets, was_ready=True)


def made(found: Facts, previous: dict[str, Any] | None = None) -> dict[str, Any]:
    return status.status(found, previous or {}, None, "2026-01-01T00:00:00Z")


def condition(found: Facts, type_: str) -> dict[str, Any]:
    return next(each for each in made(found)["conditions"] if each["type"] == type_)


def broken(trouble: Trouble) -> list[PodView]:
    return [PodView("shop-executor-1", "u", EXECUTOR, is_ready=False, trouble=trouble)]


def test_a_cluster_that_is_as_it_should_be() -> None:
    found = made(facts())

    assert found["phase"] == "Ready"
    assert found["observedGeneration"] == 3
    assert (found["replicas"], found["executorsReady"], found["schedulersReady"]) == (
        2, "2/2", "1/1",
    )  # fmt: skip
    assert found["selector"] == (
        "app.kubernetes.io/component=executor,app.kubernetes.io/instance=shop,"
        "app.kubernetes.io/name=caraway"
    )
    assert found["endpoints"]["http"] == "http://shop.web.svc:8090"
    assert {each["type"]: each["status"] for each in found["conditions"]} == {
        "Ready": "True",
        "SpecValid": "True",
        "WithinLimits": "True",
        "Reconciled": "True",
        "RolledOut": "True",
    }


@pytest.mark.parametrize(
    ("found", "phase"),
    [
        (replace(facts(), is_leaving=True), "Deleting"),
        (replace(facts(), is_paused=True), "Paused"),
        (Facts("shop", "web", 1, problems=["spec.manifest: is missing"]), "Failed"),
        (Facts("shop", "web", 1, wish=WISH), "Creating"),
        (replace(facts(executor=0), was_ready=False), "Creating"),
        (replace(facts(executor=0), was_ready=False, pods=broken(CRASH)), "Failed"),
        (
            replace(facts(executor=0), was_ready=False,
                    claims=[Trouble("VolumeNotBound", "the claim x has no volume")]),
            "Pending",
        ),
        (replace(facts(executor=1), pods=broken(CRASH)), "Degraded"),
        (facts(executor=1), "Degraded"),
        (facts(state=0), "Degraded"),
        (facts(executor=0), "Failed"),
        (facts(scheduler=0), "Failed"),
        (replace(facts(executor=1), is_rolling=True), "RollingOut"),
        (replace(facts(executor=1), is_rolling=True, trouble=CRASH), "Degraded"),
        (replace(facts(), is_scaling=True, scaling="shop-executor-2 drains"), "Scaling"),
        (replace(facts(), wish={**WISH, EXECUTOR: 3}), "Scaling"),
        (replace(facts(), problems=["spec.x: no"]), "Ready"),
        (
            replace(facts(), sets={**facts().sets, SCHEDULER: replace(
                a_set(SCHEDULER, 1), present=2)}),
            "Scaling",
        ),
        (replace(facts(), is_stopped=True), "Scaling"),
        (
            Facts("shop", "web", 1, is_stopped=True,
                  sets={EXECUTOR: SetView("e", 0, 0, 0, 0, True, "t")}),
            "Stopped",
        ),
    ],
)  # fmt: skip
def test_the_phase_says_how_it_is_in_one_word(found: Facts, phase: str) -> None:
    assert made(found)["phase"] == phase


def test_problems_of_the_spec_are_said_while_what_runs_is_left_alone() -> None:
    found = replace(facts(), problems=["spec.manifest.datasets[0].from: is missing"])

    told = condition(found, "SpecValid")

    assert (told["status"], told["reason"]) == ("False", "Invalid")
    assert told["message"] == "spec.manifest.datasets[0].from: is missing"
    assert condition(found, "Ready")["status"] == "True"


def test_a_stopped_cluster_is_as_it_should_be_and_not_ready() -> None:
    none = dict.fromkeys(WISH, 0)
    found = replace(facts(), wish=none, sets={c: a_set(c, 0) for c in none}, is_stopped=True)

    told = condition(found, "Ready")

    assert status.is_ready(found)
    assert (told["status"], told["reason"]) == ("False", "Stopped")


def test_where_kubernetes_makes_no_pods_its_events_are_pointed_to() -> None:
    # A StatefulSet whose pods a ResourceQuota refuses says so nowhere else.
    none = replace(a_set(EXECUTOR, 2, 0), present=0)
    found = replace(facts(), sets={**facts().sets, EXECUTOR: none}, was_ready=False)

    assert (
        "executor 0/2 (not all pods are made; if that lasts, the events of 'shop-executor'"
        in (condition(found, "Ready")["message"])
    )
    assert made(replace(facts(executor=1), was_ready=False))["message"] == "waits for: executor 1/2"


def test_what_keeps_a_cluster_from_being_made_is_said_in_its_message() -> None:
    # Objects of an earlier cluster of the name are still there.
    found = replace(facts(), wish={}, was_ready=False, failures=["waiting until it is gone"])

    assert (made(found)["phase"], made(found)["message"]) == (
        "Creating", "waiting until it is gone",
    )  # fmt: skip


def test_what_was_clamped_and_what_was_refused_is_said() -> None:
    clamped = replace(facts(), clamped=["spec.executor.replicas: 9 was lowered to 2"])
    refused = replace(facts(), refused=["spec.organization: too many"])

    assert condition(clamped, "WithinLimits")["reason"] == "Clamped"
    assert condition(refused, "WithinLimits")["reason"] == "Refused"


def test_a_rollout_that_stands_still_says_why() -> None:
    told = condition(replace(facts(), is_rolling=True, trouble=CRASH), "RolledOut")

    assert (told["status"], told["reason"]) == ("False", "CrashLoopBackOff")
    assert "goes on serving: pod shop-executor-1" in told["message"]


def test_the_time_of_a_condition_changes_with_its_status_only() -> None:
    before = made(facts())
    later = status.status(facts(executor=1), before, None, "2026-02-02T00:00:00Z")
    times = {each["type"]: each["lastTransitionTime"][:7] for each in later["conditions"]}

    assert (times["Ready"], times["SpecValid"]) == ("2026-02", "2026-01")


def test_the_same_status_is_not_written_again() -> None:
    before = {key: value for key, value in made(facts()).items() if value is not None}
    again = status.status(facts(), before, None, "2027-01-01T00:00:00Z")

    assert status.patch(before, again) == {}


def test_a_patch_removes_what_is_no_longer_said() -> None:
    before = {"a": 1, "progress": {"drain": {"executor": "x"}, "step": "y"}, "gone": "z"}
    wanted = {"a": 1, "progress": {"step": "y"}, "gone": None, "never": None}

    assert status.patch(before, wanted) == {"progress": {"drain": None}, "gone": None}


def test_tls_shows_in_the_endpoints() -> None:
    found = made(replace(facts(), is_tls=True))["endpoints"]

    assert found["http"] == "https://shop.web.svc:8090"
    assert found["flight"] == "grpc+tls://shop.web.svc:50051"


def test_progress_survives_the_way_through_a_status() -> None:
    kept = Progress(Drain("shop-executor-2", 5.0, "update"), 4, "executors:x", 7.0, True)

    assert progress.read(progress.written(kept)) == kept
    assert progress.read(progress.written(Progress())) == Progress()
    assert progress.read({"drain": 3, "executors": "x", "since": None}) == Progress()
