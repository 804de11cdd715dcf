"""Takes work away from a process that does not go on with it."""

from caraway_executor.engines.causes import (
    Cause,
    EngineLostError,
    EngineMovedError,
    NotBegunError,
    SilentError,
)
from caraway_executor.engines.process import EngineProcess


def from_silent(process: EngineProcess) -> None:
    """Withdraw work without results: statements, and whatever was not started."""
    for number, work, answer, _ in process.under_way():
        if answer is None or (work.is_begun and not work.is_users):
            continue
        process.abandon(number)
        if not answer.done():
            answer.set_exception(SilentError() if work.is_begun else NotBegunError())


def from_starved(process: EngineProcess, since_s: float, before_s: float) -> None:
    """Withdraw work without results that has begun since a time, or up to `before_s` earlier.

    What began later does not keep the threads, so that another process may run it next to others.
    What began shortly before may, so it runs alone. Everything else continues.
    """
    for number, work, answer, stream in process.under_way():
        is_later = work.began_s >= since_s
        if work.is_stopped or work.began_s < since_s - before_s:
            continue
        if answer is not None and (is_later or work.is_users):
            process.abandon(number)
            if not answer.done():
                answer.set_exception(NotBegunError() if is_later else SilentError())
        elif stream is not None and work.is_users and not stream.has_rows:
            process.abandon(number)
            stream.end(EngineMovedError() if is_later else EngineLostError(Cause.HUNG))
