from dataclasses import replace
from typing import Any

import pytest

from caraway_kube.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.policy import status
from caraway_operator.policy.status import ClusterFacts
from caraway_operator.scheduler_client import PartView
from caraway_operator.states import progress
from caraway_operator.states.pods import PodView, WorkloadProblem, WorkloadView
from caraway_operator.states.progress import ExecutorDrain, ReconcileProgress
from tests.operator.changing import changed

DESIRED_REPLICAS = {EXECUTOR: 2, SCHEDULER: 1, HEAD: 1, STATE: 1}
CRASH = WorkloadProblem("CrashLoopBackOff", "pod shop-executor-1: CrashLoopBackOff: exit code 1")


def a_workload(component: str, desired: int, ready: int | None = None) -> WorkloadView:
    ready = desired if ready is None else ready
    return WorkloadView(f"shop-{component}", desired, desired, ready, desired, True, "t")


def facts(**ready: int) -> ClusterFacts:
    workloads = {
        name: a_workload(name, count, ready.get(name)) for name, count in DESIRED_REPLICAS.items()
    }
    found = ClusterFacts("shop", "web", 3, desired_replicas=DESIRED_REPLICAS)
    return changed(found, workloads=workloads, was_ready=True)


def made(found: ClusterFacts, previous: dict[str, Any] | None = None) -> dict[str, Any]:
    return status.cluster_status(found, previous or {}, None, "2026-01-01T00:00:00Z")


def condition(found: ClusterFacts, type_: str) -> dict[str, Any]:
    return next(each for each in made(found)["conditions"] if each["type"] == type_)


def broken(problem: WorkloadProblem) -> list[PodView]:
    return [PodView("shop-executor-1", "u", EXECUTOR, is_ready=False, problem=problem)]


def test_the_status_of_a_ready_cluster() -> None:
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
        "OperatorAccepted": "Unknown",
        "Loaded": "Unknown",
    }


@pytest.mark.parametrize(
    ("found", "phase"),
    [
        (changed(facts(), is_terminating=True), "Deleting"),
        (changed(facts(), is_paused=True), "Paused"),
        (changed(ClusterFacts("shop", "web", 1), problems=["spec.manifest: is missing"]), "Failed"),
        (ClusterFacts("shop", "web", 1, desired_replicas=DESIRED_REPLICAS), "Creating"),
        (changed(facts(executor=0), was_ready=False), "Creating"),
        (changed(facts(executor=0), was_ready=False, pods=broken(CRASH)), "Failed"),
        (
            changed(facts(executor=0), was_ready=False,
                    claim_problems=[WorkloadProblem("VolumeNotBound", "claim x has no volume")]),
            "Pending",
        ),
        (changed(facts(executor=1), pods=broken(CRASH)), "Degraded"),
        (facts(executor=1), "Degraded"),
        (facts(state=0), "Degraded"),
        (facts(executor=0), "Failed"),
        (facts(scheduler=0), "Failed"),
        (changed(facts(executor=1), is_rolling=True), "RollingOut"),
        (changed(facts(executor=1), is_rolling=True, problem=CRASH), "Degraded"),
        (changed(facts(), is_scaling=True, scaling="draining shop-executor-2"), "Scaling"),
        (changed(facts(), desired_replicas={**DESIRED_REPLICAS, EXECUTOR: 3}), "Scaling"),
        (changed(facts(), problems=["spec.x: no"]), "Ready"),
        (
            changed(facts(), workloads={**facts().workloads, SCHEDULER: replace(
                a_workload(SCHEDULER, 1), present=2)}),
            "Scaling",
        ),
        (changed(facts(), is_stopped=True), "Scaling"),
        (
            changed(ClusterFacts("shop", "web", 1), is_stopped=True,
                    workloads={EXECUTOR: WorkloadView("e", 0, 0, 0, 0, True, "t")}),
            "Stopped",
        ),
    ],
)  # fmt: skip
def test_the_phase(found: ClusterFacts, phase: str) -> None:
    assert made(found)["phase"] == phase


def test_an_invalid_spec_does_not_make_a_running_cluster_unready() -> None:
    found = changed(facts(), problems=["spec.manifest.datasets[0].from: is missing"])

    told = condition(found, "SpecValid")

    assert (told["status"], told["reason"]) == ("False", "Invalid")
    assert told["message"] == "spec.manifest.datasets[0].from: is missing"
    assert condition(found, "Ready")["status"] == "True"


def test_a_stopped_cluster_is_complete_but_its_ready_condition_is_false() -> None:
    none = dict.fromkeys(DESIRED_REPLICAS, 0)
    found = changed(
        facts(),
        desired_replicas=none,
        workloads={c: a_workload(c, 0) for c in none},
        is_stopped=True,
    )

    told = condition(found, "Ready")

    assert status.is_ready(found)
    assert (told["status"], told["reason"]) == ("False", "Stopped")


def test_if_no_pods_are_created_the_message_refers_to_the_events() -> None:
    # A StatefulSet reports pods that a ResourceQuota rejects only in its events.
    none = replace(a_workload(EXECUTOR, 2, 0), present=0)
    found = changed(facts(), workloads={**facts().workloads, EXECUTOR: none}, was_ready=False)

    assert (
        "executor 0/2 (not all pods are created; if this lasts, see the events of 'shop-executor'"
        in (condition(found, "Ready")["message"])
    )
    assert (
        made(changed(facts(executor=1), was_ready=False))["message"] == "waiting for: executor 1/2"
    )


def test_failures_of_a_new_cluster_are_in_its_message() -> None:
    # Objects of an earlier cluster with the name still exist.
    found = changed(
        facts(), desired_replicas={}, was_ready=False, failures=["waiting until it is gone"]
    )

    assert (made(found)["phase"], made(found)["message"]) == (
        "Creating", "waiting until it is gone",
    )  # fmt: skip


def test_clamped_and_refused_values_are_in_the_condition() -> None:
    clamped = changed(facts(), clamped=["spec.executor.replicas: 9 was lowered to 2"])
    refused = changed(facts(), refused=["spec.organization: too many"])

    assert condition(clamped, "WithinLimits")["reason"] == "Clamped"
    assert condition(refused, "WithinLimits")["reason"] == "Refused"


def test_a_stopped_rollout_has_its_problem_in_the_condition() -> None:
    told = condition(changed(facts(), is_rolling=True, problem=CRASH), "RolledOut")

    assert (told["status"], told["reason"]) == ("False", "CrashLoopBackOff")
    assert "keep serving: pod shop-executor-1" in told["message"]


def test_the_transition_time_changes_only_with_the_status() -> None:
    before = made(facts())
    later = status.cluster_status(facts(executor=1), before, None, "2026-02-02T00:00:00Z")
    times = {each["type"]: each["lastTransitionTime"][:7] for each in later["conditions"]}

    assert (times["Ready"], times["SpecValid"]) == ("2026-02", "2026-01")


def test_an_unchanged_status_has_an_empty_patch() -> None:
    before = {key: value for key, value in made(facts()).items() if value is not None}
    again = status.cluster_status(facts(), before, None, "2027-01-01T00:00:00Z")

    assert status.status_patch(before, again) == {}


def test_a_patch_removes_absent_fields() -> None:
    before = {"a": 1, "progress": {"drain": {"executor": "x"}, "step": "y"}, "gone": "z"}
    desired = {"a": 1, "progress": {"step": "y"}, "gone": None, "never": None}

    assert status.status_patch(before, desired) == {"progress": {"drain": None}, "gone": None}


def test_tls_changes_the_endpoints() -> None:
    found = made(changed(facts(), has_tls=True))["endpoints"]

    assert found["http"] == "https://shop.web.svc:8090"
    assert found["flight"] == "grpc+tls://shop.web.svc:50051"


def test_progress_is_read_back_from_the_status() -> None:
    kept = ReconcileProgress(
        ExecutorDrain("shop-executor-2", 5.0, "update"), 4, "executors:x", 7.0, True
    )

    assert progress.read_progress(progress.progress_status(kept)) == kept
    assert (
        progress.read_progress(progress.progress_status(ReconcileProgress())) == ReconcileProgress()
    )
    assert (
        progress.read_progress({"drain": 3, "executors": "x", "since": None}) == ReconcileProgress()
    )


ORDERS = PartView("dataset orders (error)", "cannot connect to db:5432")
LINES = PartView("dataset lines (initializing)", is_loading=True)


def test_parts_that_are_not_ready_are_a_condition_with_their_reasons() -> None:
    found = condition(changed(facts(), unready_parts=[ORDERS, LINES]), "Loaded")

    assert (found["status"], found["reason"]) == ("False", "InError")
    assert found["message"] == (
        "dataset orders (error): cannot connect to db:5432; dataset lines (initializing)"
    )
    # The cluster serves everything else.
    assert condition(changed(facts(), unready_parts=[ORDERS]), "Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (changed(facts(), unready_parts=[]), ("True", "AllLoaded")),
        (changed(facts(), unready_parts=[LINES]), ("False", "Loading")),
        (changed(facts(), is_stopped=True), ("Unknown", "Stopped")),
        (facts(), ("Unknown", "NotAsked")),
    ],
)
def test_the_reason_says_how_far_loading_is(found: ClusterFacts, expected: tuple[str, str]) -> None:
    shown = condition(found, "Loaded")
    assert (shown["status"], shown["reason"]) == expected


def test_what_schedulers_said_last_is_kept_while_none_answers() -> None:
    before = made(changed(facts(), unready_parts=[ORDERS]))

    found = next(each for each in made(facts(), before)["conditions"] if each["type"] == "Loaded")

    assert (found["status"], found["message"]) == ("False", str(ORDERS))
