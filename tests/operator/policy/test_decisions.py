"""Decisions over states of a cluster, as values: what may be written now, and what must wait."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_kube.naming import COMPONENT_LABEL, EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.policy import decisions
from caraway_operator.policy.decisions import Decision
from caraway_operator.scheduler_client import ExecutorView
from caraway_operator.states.cluster_state import ClusterState
from caraway_operator.states.pods import TEMPLATE_HASH
from caraway_operator.states.progress import ExecutorDrain
from tests.operator.simulated_rollout import NAME, Sim

DRAIN = ExecutorDrain(f"{NAME}-2", 0.0)


def state(sim: Sim | None = None, **changes: Any) -> ClusterState:
    return replace((sim or Sim()).state(), **changes)


def workload(kind: str, component: str, image: str = "a") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": f"shop-{component}", "namespace": "web",
                     "labels": {COMPONENT_LABEL: component}},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
    }  # fmt: skip


def executors(ready: int, refused: int = 0) -> list[ExecutorView]:
    return [
        ExecutorView(f"{NAME}-{number}", is_ready=number < ready, is_draining=False,
                     is_drained=False, is_refused=number >= ready)
        for number in range(ready + refused)
    ]  # fmt: skip


@pytest.mark.parametrize("replicas", [0, 1, 3, 1000])
def test_a_new_cluster_has_at_once_what_is_desired(replicas: int) -> None:
    found = state(workloads={}, pods=[], desired_replicas={EXECUTOR: replicas})
    assert decisions.decide(found) == Decision(replicas, 0, progress=found.progress)
    assert not decisions.needs_schedulers(found)


def test_a_stopped_cluster_waits_for_nobody_and_undoes_a_drain() -> None:
    stopped = CarawayClusterSpec(stopped=True)
    found = state(Sim(drain=DRAIN), spec=stopped, desired_replicas={EXECUTOR: 0})
    decision = decisions.decide(found)
    assert (decision.replicas, decision.cancel_drain) == (0, DRAIN.executor)
    assert decision.progress.drain is None and not decision.hold and not decision.is_rolling


def test_a_settled_cluster_stays_as_it_is() -> None:
    found = state()
    decision = decisions.decide(found)
    assert decision.replicas == 3
    assert not (decision.is_rolling or decision.is_scaling or decision.hold)
    assert not (decision.start_drain or decision.cancel_drain or decision.pods_to_delete)
    assert not decisions.needs_schedulers(found)


def test_more_executors_come_at_once() -> None:
    decision = decisions.decide(state(Sim(desired_replicas=7)))
    assert decision.replicas == 7 and not decision.start_drain


def test_fewer_executors_are_drained_before_they_go() -> None:
    found = state(Sim(desired_replicas=1))
    assert decisions.needs_schedulers(found)
    decision = decisions.decide(found)
    assert decision.replicas == 3 and decision.start_drain == f"{NAME}-2"
    assert decision.is_scaling and decision.scaling


def test_an_executor_that_is_drained_may_go() -> None:
    sim = Sim(desired_replicas=2, drained={f"{NAME}-2"}, drain=DRAIN)
    decision = decisions.decide(state(sim))
    assert decision.replicas == 2


def test_a_rollout_ends_a_drain_for_fewer_executors() -> None:
    """Else two executors would be away at once: the drained one and the replaced one."""
    sim = Sim(desired="new", desired_replicas=2, drain=DRAIN)
    decision = decisions.decide(state(sim))
    assert decision.cancel_drain == DRAIN.executor
    assert decision.progress.drain is None and decision.start_drain is None
    assert decision.replicas >= 3


def test_no_executor_is_removed_during_a_rollout() -> None:
    decision = decisions.decide(state(Sim(desired="new", desired_replicas=1)))
    assert decision.replicas >= 3 and decision.is_rolling


@given(
    desired=st.integers(0, 20),
    given_least=st.none() | st.integers(0, 30),
    ready=st.integers(0, 20),
    refused=st.integers(0, 20),
)
def test_the_least_of_ready_executors_can_be_reached_and_keeps_one(
    desired: int, given_least: int | None, ready: int, refused: int
) -> None:
    spec = CarawayClusterSpec.model_validate(
        {} if given_least is None else {"updateStrategy": {"minReadyExecutors": given_least}}
    )
    found = decisions.min_ready_executors(spec, desired, executors(ready, refused))
    assert 0 <= found <= max(desired, 1)
    if given_least == 0 or desired == 0:
        assert found == 0
    elif desired > refused:
        # Refused executors are never counted as ready, so no rollout may wait for them.
        assert 1 <= found <= desired - refused
    else:
        assert found == 1


@pytest.mark.parametrize(("desired", "expected"), [(0, 0), (1, 1), (2, 1), (5, 4)])
def test_all_but_one_executor_are_ready_by_default(desired: int, expected: int) -> None:
    found = decisions.min_ready_executors(CarawayClusterSpec(), desired, executors(desired))
    assert found == expected


def test_hashes_are_those_of_the_pod_templates_alone() -> None:
    one = decisions.with_template_hashes([workload("StatefulSet", EXECUTOR)])
    other = workload("StatefulSet", EXECUTOR)
    other["spec"]["replicas"] = 9
    other["metadata"]["annotations"] = {"note": "x"}
    (same,) = decisions.with_template_hashes([other])
    assert decisions.template_hashes([same]) == decisions.template_hashes(one)
    assert same["metadata"]["annotations"]["note"] == "x"
    changed = decisions.with_template_hashes([workload("StatefulSet", EXECUTOR, "b")])
    assert decisions.template_hashes(changed) != decisions.template_hashes(one)
    assert TEMPLATE_HASH not in other["metadata"]["annotations"]


def test_only_workloads_have_hashes() -> None:
    service = {**workload("Service", SCHEDULER), "spec": {}}
    found = decisions.with_template_hashes([service, workload("Deployment", SCHEDULER)])
    assert found[0] is service
    assert set(decisions.template_hashes(found)) == {SCHEDULER}


def test_a_decision_changes_only_the_executors() -> None:
    objects = [workload("StatefulSet", EXECUTOR), workload("StatefulSet", STATE),
               workload("Deployment", SCHEDULER)]  # fmt: skip
    before = repr(objects)
    settled, held = decisions.apply_decision(objects, Decision(5, 2))
    assert repr(objects) == before and held == []
    spec = settled[0]["spec"]
    assert spec["replicas"] == 5
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    assert settled[1:] == objects[1:]


def test_components_that_wait_are_held_back_with_their_names() -> None:
    objects = [workload("StatefulSet", each) for each in (EXECUTOR, STATE, HEAD)]
    config = {**workload("ConfigMap", HEAD), "spec": {}}
    decision = Decision(hold=frozenset({HEAD, STATE}))
    _, held = decisions.apply_decision([*objects, config], decision)
    assert [each.name for each in held] == [f"shop-{STATE}", f"shop-{HEAD}"]
    assert all(each.kind == "StatefulSet" for each in held)


@pytest.mark.parametrize("labels", [None, {}, {"other": "x"}])
def test_an_object_without_a_component_belongs_to_none(labels: dict[str, str] | None) -> None:
    assert decisions.component_of({"metadata": {"labels": labels}}) == ""


@given(
    desired=st.integers(0, 5),
    replicas=st.integers(1, 5),
    template=st.sampled_from(["old", "new"]),
    is_drained=st.booleans(),
    is_answered=st.booleans(),
)
def test_no_decision_removes_an_executor_that_is_not_drained(
    desired: int, replicas: int, template: str, is_drained: bool, is_answered: bool
) -> None:
    last = f"{NAME}-{replicas - 1}"
    sim = Sim(
        desired_replicas=desired,
        replicas=replicas,
        desired=template,
        drained={last} if is_drained else set(),
        drain=replace(DRAIN, executor=last) if is_drained else None,
    )
    found = state(sim) if is_answered else state(sim, executors=None)
    may_go = is_drained and is_answered and template == "old" and desired < replicas
    assert decisions.decide(found).replicas >= replicas - may_go
