"""Limits the time that the planning of a statement takes.

It is processor time, so that a statement may wait for a store, for rows or for its turn. The
process is asked how much it has used. One that does not reply, although it runs nothing else, plans
in native code, which holds the interpreter.
"""

from caraway_core.errors import QueryTimeoutError
from caraway_executor.engines.causes import Cause
from caraway_executor.engines.process import EngineProcess
from caraway_executor.engines.seats import Seat
from caraway_executor.engines.works import Work
from caraway_executor.resources.usage import used_s

_NO_REPLY_S = 1.0


def look(seat: Seat, process: EngineProcess, now_s: float) -> None:
    """Refuse the statements of a process whose planning has exceeded the limit."""
    limit_s = seat.options.settings.planning_timeout_s
    if not limit_s:
        return
    for number, work in process.unanswered():
        if now_s - work.began_s <= limit_s:
            continue
        if work.planned_s > limit_s or _is_busy(seat, process, work, limit_s, now_s):
            process.refuse(number, _refusal(limit_s))
            if not seat.is_shared:
                process.kill(Cause.HUNG, "planning did not end")
        elif work.asked_s is None:
            process.ask_planning(number)


def _is_busy(seat: Seat, process: EngineProcess, work: Work, limit_s: float, now_s: float) -> bool:
    """Return whether a process that plans one statement does not reply, and computes."""
    if seat.is_shared or work.asked_s is None or now_s - work.asked_s <= _NO_REPLY_S:
        return False
    return used_s(process.pid) > limit_s


def _refusal(limit_s: float) -> QueryTimeoutError:
    return QueryTimeoutError(
        f"the statement was not planned within {limit_s:g} s; write it with fewer joins, "
        "subqueries and conditions, or raise runtime.query.planning_timeout"
    )
