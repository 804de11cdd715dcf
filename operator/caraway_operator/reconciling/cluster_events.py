"""The Kubernetes Events of a cluster, made from decisions and writes. Pure."""

from collections.abc import Iterator

from caraway_operator.kube.events import EventContent
from caraway_operator.policy import status
from caraway_operator.policy.status import ClusterFacts
from caraway_operator.reconciling.writing import WriteResult


def write_events(result: WriteResult) -> Iterator[EventContent]:
    """Yield one event for each object that was created, updated, repaired or removed."""
    for each in result.created:
        yield EventContent("Created", f"created {each.kind} {each.name}", "Create", related=each)
    for each in result.changed:
        yield EventContent("Updated", f"updated {each.kind} {each.name}", "Update", related=each)
    for each in result.repaired:
        note = f"{each.kind} {each.name} was edited; restored it to the spec"
        yield EventContent("Repaired", note, "Repair", "Warning", related=each)
    for each in result.recreated:
        note = f"recreated {each.kind} {each.name}, because an immutable field changed"
        yield EventContent("Remade", note, "Remake", "Warning", related=each)
    for each in result.removed:
        yield EventContent("Removed", f"removed {each.kind} {each.name}", "Remove", related=each)


def state_events(facts: ClusterFacts) -> Iterator[EventContent]:
    """Yield the events of the current state. The recorder leaves out repetitions."""
    decision = facts.decision
    for failure in facts.failures:
        yield EventContent("NotApplied", failure, "Apply", "Warning")
    for clamped in facts.spec.clamped:
        yield EventContent("Clamped", clamped, "Limit", "Warning")
    if facts.refusal:
        yield EventContent("OperatorRefused", status.refusal_text(facts), "Ask", "Warning")
    for part in facts.unready_parts or ():
        if not part.is_loading:
            yield EventContent("NotLoaded", str(part), "Load", "Warning")
    if decision.problem:
        note = f"the rollout stopped: {decision.problem.message}"
        yield EventContent(decision.problem.reason, note, "Rollout", "Warning")
    elif decision.is_rolling and decision.rollout:
        yield EventContent("RollingOut", decision.rollout, "Rollout")
    if decision.scaling:
        yield EventContent("Scaling", decision.scaling, "Scale")
    if decision.cancel_drain:
        yield EventContent("DrainUndone", f"{decision.cancel_drain} accepts work again", "Scale")
