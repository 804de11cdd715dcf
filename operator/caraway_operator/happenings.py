"""The events that users see, made of what was decided and done. Pure."""

from collections.abc import Iterator

from caraway_operator.deciding import Decided
from caraway_operator.kube.events import Happening
from caraway_operator.status import Facts
from caraway_operator.writing import Written


def done(written: Written) -> Iterator[Happening]:
    """Yield one event for each object that was made, changed, put back or removed."""
    for each in written.created:
        yield Happening("Created", f"made {each.kind} {each.name}", "Create", related=each)
    for each in written.changed:
        yield Happening("Updated", f"changed {each.kind} {each.name}", "Update", related=each)
    for each in written.repaired:
        note = f"somebody edited {each.kind} {each.name}; put back what the spec says"
        yield Happening("Repaired", note, "Repair", "Warning", related=each)
    for each in written.remade:
        note = f"made {each.kind} {each.name} again, as a field differed that cannot be changed"
        yield Happening("Remade", note, "Remake", "Warning", related=each)
    for each in written.removed:
        yield Happening("Removed", f"removed {each.kind} {each.name}", "Remove", related=each)


def standing(facts: Facts, decided: Decided) -> Iterator[Happening]:
    """Yield what goes on; whoever writes it leaves repetitions out."""
    for failure in facts.failures:
        yield Happening("NotApplied", failure, "Apply", "Warning")
    for clamped in facts.clamped:
        yield Happening("Clamped", clamped, "Limit", "Warning")
    if decided.trouble:
        note = f"the rollout stopped: {decided.trouble.message}"
        yield Happening(decided.trouble.reason, note, "Rollout", "Warning")
    elif decided.is_rolling and decided.rollout:
        yield Happening("RollingOut", decided.rollout, "Rollout")
    if decided.scaling:
        yield Happening("Scaling", decided.scaling, "Scale")
    if decided.undo:
        yield Happening("DrainUndone", f"{decided.undo} works again", "Scale")
