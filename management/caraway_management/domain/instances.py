"""Rules of requests for the instances of a project."""

from collections.abc import Container

from caraway_management.domain import plans, refusals
from caraway_management.domain.refusals import RefusedError


def check_running(*, is_paused: bool, is_deployed: bool) -> None:
    """Check that a project has a runtime.

    Raises:
        RefusedError: it is paused, or has never been deployed.
    """
    if is_paused:
        raise refusals.conflict("the project is paused; resume it first", "project_paused")
    if not is_deployed:
        raise refusals.conflict(
            "the project is not deployed; deploy it first", "project_not_deployed"
        )


def check_tail(plan: str, tail: int) -> None:
    """Check that a plan shows this many lines.

    Raises:
        RefusedError: it shows fewer.
    """
    most = plans.max_tail(plan)
    if tail > most:
        raise RefusedError(
            403, f"the plan '{plan}' shows the last {most} lines", "plan_limit",
            extra={"max_tail": most},
        )  # fmt: skip


def check_known(name: str, known: Container[str]) -> None:
    """Check that a project has an instance.

    Raises:
        RefusedError: it has none of this name.
    """
    if name not in known:
        raise refusals.RefusedError(404, f"instance '{name}' not found", "instance_not_found")


def offline(name: str) -> RefusedError:
    """Return the refusal of an instance that has ended."""
    return refusals.conflict(f"instance '{name}' is offline", "instance_offline")
