"""Determines whether the runtime is ready, from component states and gates; pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from caraway_core.protocols.dispatch import ExecutorStatus


class GateError(ValueError):
    """A gate with an invalid value, or one that this process cannot evaluate."""


@dataclass(frozen=True, slots=True)
class Gates:
    """Minimum numbers of ready executors; zero disables a gate."""

    min_ready: int = 0
    min_ready_percent: int = 0


@dataclass(frozen=True, slots=True)
class UnreadyPart:
    """A part of the manifest that cannot be used now, such as a dataset."""

    kind: str
    name: str
    status: str
    reason: str = ""
    is_settled: bool = False
    """It was tried once, and only a change elsewhere makes it ready."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.status})"


@dataclass(frozen=True, slots=True)
class Readiness:
    """The result, with one line of text for each gate."""

    is_ready: bool
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The result as one word or two."""
        return "ready" if self.is_ready else "not ready"


def check_gates(gates: Gates, *, is_scheduler: bool) -> None:
    """Reject gates that are out of range, or that need the scheduler role.

    Raises:
        GateError: a gate is invalid; its text says what to change.
    """
    if gates.min_ready < 0:
        raise GateError("min_ready_executors must be 0 or more")
    if not 0 <= gates.min_ready_percent <= 100:
        raise GateError("min_ready_executors_percent must be between 0 and 100")
    if (gates.min_ready or gates.min_ready_percent) and not is_scheduler:
        raise GateError(
            "executor gates need the scheduler role, and this process runs standalone; "
            "leave min_ready_executors and min_ready_executors_percent out"
        )


def evaluate(
    waiting: Sequence[str], executors: Sequence[ExecutorStatus], gates: Gates
) -> Readiness:
    """Evaluate the components and the executor gates; `waiting` lists components that are not
    ready.
    """
    lines = [_component_line(waiting)]
    passes = [not waiting]
    registered = sum(executor.is_registered for executor in executors)
    ready = sum(executor.is_registered and executor.is_ready for executor in executors)
    percent = 100 * ready // registered if registered else 0
    if gates.min_ready:
        ok = ready >= gates.min_ready
        lines.append(
            f"{_mark(ok)} executors: {ready}/{registered} ready "
            f"({percent}%, registered={registered}, min={gates.min_ready})"
        )
        passes.append(ok)
    if gates.min_ready_percent:
        # Compare 100 * ready, so that rounding never passes a gate. Without registered executors it
        # fails.
        ok = registered > 0 and 100 * ready >= gates.min_ready_percent * registered
        lines.append(
            f"{_mark(ok)} executors percent: {ready}/{registered} ready "
            f"({percent}%, registered={registered}, min={gates.min_ready_percent}%)"
        )
        passes.append(ok)
    if len(lines) == 1:
        lines.append("[ ] executors: no gate asked for")
    return Readiness(all(passes), tuple(lines))


def _component_line(waiting: Sequence[str]) -> str:
    if not waiting:
        return "[+] components ok"
    return f"[-] components not ready: {', '.join(waiting)}"


def _mark(passes: bool) -> str:
    return "[+]" if passes else "[-]"
