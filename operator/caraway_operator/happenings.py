"""What users are told as events, from what was decided and done. Pure."""

from collections.abc import Iterator, Sequence

from caraway_operator.deciding import Decided
from caraway_operator.kube.events import Happening
from caraway_operator.kube.kinds import Ref
from caraway_operator.status import Facts
from caraway_operator.writing import Written


def happenings(facts: Facts, written: Written, decided: Decided) -> Iterator[Happening]:
    """Yield what is worth telling; whoever tells leaves repetitions out."""
    if written.created:
        yield Happening("Created", f"made {_names(written.created)}", "Create")
    if written.changed:
        yield Happening("Updated", f"changed {_names(written.changed)}", "Update")
    if written.repaired:
        note = f"somebody edited {_names(written.repaired)}; put back what the spec says"
        yield Happening("Repaired", note, "Repair", "Warning")
    if written.removed:
        yield Happening("Removed", f"removed {_names(written.removed)}", "Remove")
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


def _names(refs: Sequence[Ref]) -> str:
    return ", ".join(f"{each.kind} {each.name}" for each in refs)
