"""Events of a cluster, from its writes and its state."""

from dataclasses import replace
from typing import Any

import pytest

from caraway_kube.api.kinds import POD, ObjectRef
from caraway_operator.policy.decisions import Decision
from caraway_operator.policy.status import ClusterFacts
from caraway_operator.reconciling import cluster_events
from caraway_operator.reconciling.writing import WriteResult

REF = ObjectRef(POD.name, "web", "sales-0")
FACTS = ClusterFacts("sales", "web", 1)


@pytest.mark.parametrize(
    ("field", "reason", "type_"),
    [
        ("created", "Created", "Normal"),
        ("changed", "Updated", "Normal"),
        ("removed", "Removed", "Normal"),
        ("repaired", "Repaired", "Warning"),
        ("recreated", "Remade", "Warning"),
    ],
)
def test_each_write_is_an_event_of_its_object(field: str, reason: str, type_: str) -> None:
    result: Any = WriteResult(**{field: (REF, REF)})  # type: ignore[arg-type] # a tuple of these
    first, second = cluster_events.write_events(result)
    assert first == second
    assert (first.reason, first.type, first.related) == (reason, type_, REF)
    assert "Pod sales-0" in first.note


def test_without_writes_there_are_no_events() -> None:
    assert list(cluster_events.write_events(WriteResult(failures=("no",)))) == []
    assert list(cluster_events.state_events(FACTS)) == []


@pytest.mark.parametrize(
    ("decision", "reasons"),
    [
        (Decision(is_rolling=True, rollout="1 of 3"), ["RollingOut"]),
        (Decision(is_rolling=True), []),
        (Decision(rollout="1 of 3"), []),
        (Decision(scaling="to 3"), ["Scaling"]),
        (Decision(cancel_drain="sales-0", scaling="to 3"), ["Scaling", "DrainUndone"]),
    ],
)
def test_decisions(decision: Decision, reasons: list[str]) -> None:
    facts = replace(FACTS, decision=decision)
    assert [each.reason for each in cluster_events.state_events(facts)] == reasons


def test_failures_are_warnings() -> None:
    found = list(cluster_events.state_events(replace(FACTS, failures=("a", "b"))))
    assert [(each.reason, each.note, each.type) for each in found] == [
        ("NotApplied", "a", "Warning"), ("NotApplied", "b", "Warning")
    ]  # fmt: skip
