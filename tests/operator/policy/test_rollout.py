"""Rollouts with a small simulation of the controllers of Kubernetes, and single steps."""

from dataclasses import replace

import pytest

from caraway_kube.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.policy import rollout
from caraway_operator.policy.rollout import RolloutStep
from caraway_operator.scheduler_client import ExecutorView
from caraway_operator.states.pods import PodView, WorkloadProblem, WorkloadView
from caraway_operator.states.progress import ExecutorDrain
from tests.operator.changing import changed
from tests.operator.simulated_rollout import CRASH, NAME, Sim


def test_nothing_happens_without_a_change() -> None:
    assert rollout.next_rollout_step(Sim().state()) == RolloutStep()


def test_one_executor_then_schedulers_then_the_others_then_state_then_head() -> None:
    sim = Sim(desired="new")

    found = sim.run()

    assert sim.log == ["2", SCHEDULER, "1", "0", STATE, HEAD]
    assert found == RolloutStep()


def test_executors_of_another_protocol_version_follow_the_schedulers() -> None:
    sim = Sim(desired="new", refused_by="version")

    sim.run()

    assert sim.log == ["2", SCHEDULER, "1", "0", STATE, HEAD]


def test_a_bad_template_stops_at_the_first_executor_with_a_problem() -> None:
    sim = Sim(desired="bad", bad=frozenset({"bad"}))

    found = sim.run()

    assert sim.log == ["2"]
    assert found.problem == CRASH
    assert found.hold == {SCHEDULER, HEAD, STATE}


def test_reverting_a_bad_template_replaces_only_the_broken_pod() -> None:
    sim = Sim(desired="bad", bad=frozenset({"bad"}))
    sim.run()
    sim.desired = "old"

    found = sim.run()

    assert sim.log == ["2", "2"]
    assert found == RolloutStep()


def test_a_fixed_template_replaces_the_broken_pod_first() -> None:
    sim = Sim(desired="bad", bad=frozenset({"bad"}))
    sim.run()
    sim.desired = "good"

    sim.run()

    assert sim.log == ["2", "2", SCHEDULER, "1", "0", STATE, HEAD]


def test_a_cluster_that_was_never_ready_is_replaced_at_once() -> None:
    sim = Sim(template="bad", bad=frozenset({"bad"}), desired="good")
    sim.single = dict.fromkeys((SCHEDULER, HEAD, STATE), "bad")

    sim.run(5)

    assert set(sim.single.values()) == {"good"}
    assert set(sim.pods.values()) == {"good"}


def test_a_single_executor_is_replaced_with_a_surge() -> None:
    sim = Sim(desired_replicas=1, replicas=1, desired="new")

    sim.run()

    assert sim.log == ["1", SCHEDULER, "0", STATE, HEAD]


def test_a_change_during_a_rollout_starts_over() -> None:
    sim = Sim(desired="new")
    while "1" not in sim.log:
        sim.advance()
    sim.desired = "newer"

    sim.run()

    assert set(sim.pods.values()) == {"newer"}
    assert sim.drain is None
    assert not sim.drained


def test_a_new_manifest_replaces_only_the_schedulers() -> None:
    sim = Sim()
    state = sim.state()
    state = changed(state, templates={**state.templates, SCHEDULER: "new"})

    found = rollout.next_rollout_step(state)

    assert found.hold == frozenset()
    assert (found.is_active, found.message) == (True, "replacing the scheduler")


@pytest.mark.parametrize("desired_replicas", [2, 3, 5])
def test_at_most_one_executor_is_replaced_at_a_time(desired_replicas: int) -> None:
    sim = Sim(desired_replicas=desired_replicas, replicas=desired_replicas, desired="new")
    for _ in range(80):
        before = dict(sim.pods)
        sim.advance()
        changed = [number for number in before if before[number] != sim.pods[number]]
        assert len(changed) <= 1
        assert len(sim.drained) <= 1


def test_no_executor_is_replaced_before_it_has_drained() -> None:
    sim = Sim(desired="new")
    sim.advance()
    found = rollout.next_rollout_step(sim.state())
    assert (found.start_drain, found.partition) == (f"{NAME}-2", 3)

    busy = ExecutorView(f"{NAME}-2", is_ready=False, is_draining=True, running=1)
    state = changed(sim.state(), drain=found.drain, executors=[busy])

    assert rollout.next_rollout_step(state).partition == 3
    late = changed(state, now=state.now + 200)
    assert rollout.next_rollout_step(late).partition == 2


def test_no_executor_drains_while_too_few_are_ready() -> None:
    sim = Sim(desired="new")
    sim.advance()

    found = rollout.next_rollout_step(changed(sim.state(), is_capable=False))

    assert (found.start_drain, found.drain) == (None, None)
    assert "waiting for more ready executors" in found.message


def test_a_step_that_exceeds_the_deadline_is_a_problem() -> None:
    sim = Sim(desired="new")
    sim.advance()
    first = rollout.next_rollout_step(changed(sim.state(), is_capable=False))
    late = changed(
        sim.state(), is_capable=False, step=first.step, since=first.since, now=first.since + 901
    )

    problem = rollout.next_rollout_step(late).problem

    assert problem is not None
    assert problem.reason == "ProgressDeadlineExceeded"


NO_ROOM = WorkloadProblem("Unschedulable", "0/1 nodes are available: insufficient memory")


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ([], NO_ROOM),
        ([PodView("new-2", "n2", SCHEDULER, is_ready=False)], None),
        ([PodView("old-1", "o1", SCHEDULER, is_ready=False, is_terminating=True)], None),
        ([PodView("new-2", "n2", SCHEDULER, is_ready=False, problem=NO_ROOM)], NO_ROOM),
    ],
)
def test_schedulers_without_room_wait_for_those_that_come_or_leave(
    others: list[PodView], problem: WorkloadProblem | None
) -> None:
    sim = Sim(desired="new")
    while SCHEDULER not in sim.log:
        sim.advance()
    state = sim.state()
    half = replace(state.workloads[SCHEDULER], replicas=2, present=4, updated=2, ready=2)
    waits = PodView("new-1", "n1", SCHEDULER, is_ready=False, problem=NO_ROOM)
    pods = [pod for pod in state.pods if pod.component != SCHEDULER]

    found = rollout.next_rollout_step(
        changed(state, workloads={**state.workloads, SCHEDULER: half}, pods=[*pods, waits, *others])
    )

    assert found.problem == problem


def test_the_drain_of_a_reverted_rollout_is_cancelled() -> None:
    sim = Sim()

    found = rollout.next_rollout_step(
        changed(sim.state(), drain=ExecutorDrain(f"{NAME}-2", 0.0, "update"))
    )

    assert (found.cancel_drain, found.drain) == (f"{NAME}-2", None)


def test_an_unobserved_template_is_awaited() -> None:
    sim = Sim(desired="new")
    sim.advance()
    state = sim.state()
    unseen = replace(state.workloads[EXECUTOR], is_observed=False)

    found = rollout.next_rollout_step(
        changed(state, workloads={**state.workloads, EXECUTOR: unseen})
    )

    assert (found.is_active, found.start_drain, found.partition) == (True, None, 3)


def test_pods_of_a_set_without_a_status_are_not_outdated() -> None:
    # The pods exist but wait for volumes, and the StatefulSet has not reported its newest
    # revision yet.
    waits = WorkloadProblem("Unschedulable", "pod has unbound immediate PersistentVolumeClaims")
    state = Sim().state()
    young = WorkloadView(NAME, 3, 0, 0, 0, False, "old")
    pods = [replace(pod, is_ready=False, problem=waits) for pod in state.pods if pod.revision]

    found = rollout.next_rollout_step(changed(state, workloads={EXECUTOR: young}, pods=pods))

    assert found == RolloutStep()


def test_the_last_executor_has_a_step_and_a_deadline_of_its_own() -> None:
    sim = Sim(desired="new")
    while sim.log != ["2", SCHEDULER, "1", "0"]:
        sim.advance()
    state = changed(sim.state(), now=1e9, step="executors:shop-executor-0", since=1e9)
    gone = [pod for pod in state.pods if pod.name != f"{NAME}-0"]
    late = replace(state.workloads[EXECUTOR], present=2, ready=2, updated=2)
    state = changed(state, pods=gone, workloads={**state.workloads, EXECUTOR: late})

    found = rollout.next_rollout_step(state)
    again = rollout.next_rollout_step(
        changed(state, step=found.step, since=found.since, now=1e9 + 5)
    )

    assert found.hold == {HEAD, STATE} and (found.step, found.since) == ("executor:ready", 1e9)
    assert again.message == "waiting for the executor to become ready" and again.problem is None


def test_a_broken_head_is_deleted_if_it_is_outdated() -> None:
    sim = Sim()
    state = sim.state()
    head = replace(state.workloads[HEAD], ready=0, updated=0, revision="new")
    broken = PodView("shop-head-0", "u", HEAD, is_ready=False, revision="old", problem=CRASH)
    pods = [*(pod for pod in state.pods if pod.component != HEAD), broken]

    found = rollout.next_rollout_step(
        changed(state, workloads={**state.workloads, HEAD: head}, pods=pods)
    )

    assert found.pods_to_delete == (broken,)


def test_executors_are_replaced_without_a_drain_if_no_scheduler_is_ready() -> None:
    sim = Sim(desired="new")
    sim.advance()
    state = sim.state()
    idle = replace(state.workloads[SCHEDULER], ready=0)

    found = rollout.next_rollout_step(
        changed(
            state, workloads={**state.workloads, SCHEDULER: idle}, executors=None, is_capable=False
        )
    )

    assert (found.partition, found.start_drain) == (2, None)


def test_an_executor_that_kubernetes_does_not_replace_is_deleted() -> None:
    sim = Sim(desired="new")
    sim.advance()
    state = sim.state()
    lowered = replace(state.workloads[EXECUTOR], partition=2)
    state = changed(state, workloads={**state.workloads, EXECUTOR: lowered})
    first = rollout.next_rollout_step(state)

    late = rollout.next_rollout_step(
        changed(state, step=first.step, since=first.since, now=state.now + 31)
    )

    assert first.pods_to_delete == ()
    assert [pod.name for pod in late.pods_to_delete] == [f"{NAME}-2"]


def test_a_scheduler_rollout_lasts_until_the_new_pod_is_ready() -> None:
    sim = Sim()
    state = sim.state()
    # The new pod waits for its first executor while the old one serves.
    both = replace(state.workloads[SCHEDULER], present=2, ready=1, updated=1)
    first = rollout.next_rollout_step(
        changed(state, workloads={**state.workloads, SCHEDULER: both})
    )
    coming = replace(state.workloads[SCHEDULER], ready=0)

    last = rollout.next_rollout_step(
        changed(
            state,
            workloads={**state.workloads, SCHEDULER: coming},
            step=first.step,
            since=first.since,
        )
    )

    assert (first.is_active, first.message) == (True, "replacing the scheduler")
    assert last.is_active


def test_a_restarted_or_added_scheduler_is_no_rollout() -> None:
    state = Sim().state()
    restarting = replace(state.workloads[SCHEDULER], ready=0)
    added = replace(state.workloads[SCHEDULER], replicas=2)

    for there in (restarting, added):
        assert not rollout.next_rollout_step(
            changed(state, workloads={**state.workloads, SCHEDULER: there})
        ).is_active
