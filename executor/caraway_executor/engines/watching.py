"""Watches engine processes: their memory, their planning, and whether they stop cancelled work.

The planning of a statement has a limit of processor time, so that a statement may wait for a store,
for rows or for its turn. The process is asked how much it has used. One that does not reply,
although it runs nothing else, plans in native code, which holds the interpreter.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from caraway_core.concurrency import tasks
from caraway_core.errors import QueryTimeoutError
from caraway_executor.engines.causes import (
    Cause,
    EngineLostError,
    EngineMovedError,
    NotBegunError,
    SilentError,
)
from caraway_executor.engines.process import EngineProcess
from caraway_executor.engines.seats import Seat
from caraway_executor.engines.works import Work
from caraway_executor.resources.calm import Idle, IdleStart
from caraway_executor.resources.starving import PROBE_AFTER_S, SHORTLY_S, STARVED_CORES, STARVED_S
from caraway_executor.resources.usage import (
    anonymous_bytes,
    times_s,
    used_s,
    waiting_s,
    wanted_s,
    worded,
)

logger = logging.getLogger(__name__)
_BUSY_LOOK_S = 0.02
_IDLE_LOOK_S = 0.25
_START_S = 20.0
_LATE_S = 0.03
_STOP_S = 4.0
"""The time that cancelled work may take to stop before its process is ended."""
_LONGEST_STOP_S = 20.0
_CALM_S = 1.0
_CALM_CORES = 0.5
_GROWS_BYTES = 128 * 1024 * 1024
_VIEW_S = 30.0
_REST_S = 1.0
"""A process that is silent for this long does not get its seat back: its planning does not end."""
_PING_S = 0.05
_SILENT_S = 0.2
"""A process silent for longer gets no more statements. Native code may hold its threads."""
_STARVED_REST_S = 30.0
"""As `_REST_S`: what keeps the threads mostly ends, and then its plans and rows are still there."""
_SILENT_AT_REST_S = 1.0
"""The same limit if it uses no processor: a busy host may have given it none."""
_NO_REPLY_S = 1.0


@dataclass(frozen=True, slots=True)
class _Pinged:
    """The state of a process when it was pinged: the time, and its waiting and processor times."""

    at_s: float
    waited_s: float
    used_s: float


@dataclass(slots=True)
class Watch:
    """Checks every engine process several times a second, and ends those that must end."""

    seats: Sequence[Seat]
    _pinged: dict[int, _Pinged] = field(default_factory=dict)
    """The state of each process at its last ping."""
    _probed: dict[int, float] = field(default_factory=dict)
    """The processor time of each process at its last probe."""
    _stopped: dict[int, IdleStart] = field(default_factory=dict)
    _idle: dict[int, Idle] = field(default_factory=dict)
    """The activity of processes without work, since work was cancelled in them."""
    _tasks: tasks.Tasks = field(default_factory=tasks.Tasks)

    def start_watching(self) -> None:
        """Start watching, unless it is running."""
        if not self._tasks:
            self._tasks.keep(self._run, "watch the engine processes")

    def close(self) -> None:
        """Stop watching."""
        self._tasks.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = _IDLE_LOOK_S
        while True:
            due_s = loop.time() + pause_s
            await asyncio.sleep(pause_s)
            if loop.time() - due_s > _LATE_S:
                # This loop was delayed, so let it first read what has arrived.
                await asyncio.sleep(_LATE_S)
            is_busy = False
            for seat in self.seats:
                for process in seat.processes:
                    if process.is_alive:
                        self._look(seat, process)
                    is_busy = is_busy or bool(process.works)
            pause_s = _BUSY_LOOK_S if is_busy else _IDLE_LOOK_S

    def _look(self, seat: Seat, process: EngineProcess) -> None:
        now_s = asyncio.get_running_loop().time()
        if process in seat.retired and not process.works:
            process.kill(Cause.CLOSED)
            return
        seat.wake(process, now_s, _REST_S if process.probed_s is None else _STARVED_REST_S)
        limit_planning(seat, process, now_s)
        ceiling, used_bytes = seat.options.memory_bytes, anonymous_bytes(process.pid)
        if (
            process.is_silent
            and not process.works
            and used_bytes > process.silent_bytes + _GROWS_BYTES
        ):
            # Its work was moved elsewhere and is judged there; two processes must not grow at once.
            process.kill(Cause.CLOSED)
        elif ceiling is not None and used_bytes > ceiling:
            detail = f"it used {worded(used_bytes)} where {worded(ceiling)} is allowed"
            process.kill(Cause.MEMORY, detail)
        elif self._has_hung(process, now_s):
            process.kill(Cause.HUNG, "a cancelled statement did not stop")
        elif seat.is_shared and process.works and self._is_silent(process, now_s):
            process.is_silent, process.silent_bytes = True, used_bytes
            seat.rest(process, now_s)
            withdraw_from_silent(process)
        elif seat.is_shared and process.works and self._is_starved(process, now_s):
            assert process.probed_s is not None
            process.is_silent, process.silent_bytes = True, used_bytes
            seat.rest(process, now_s)
            withdraw_from_starved(process, process.probed_s, SHORTLY_S)
        elif process.registering_since_s and now_s - process.registering_since_s > _VIEW_S:
            process.kill(Cause.HUNG, f"a view was not planned within {_VIEW_S:g} s")
        else:
            self._look_at_rest(seat, process, now_s)

    def _is_silent(self, process: EngineProcess, now_s: float) -> bool:
        """Return whether a process has not answered although its loop could have run."""
        if process.is_silent or process.has_writes:
            # The next process would not have the written rows.
            return False
        before = self._pinged.get(process.pid)
        if process.pinged_s is None and before is not None and now_s - before.at_s < _PING_S:
            return False
        process.ping()
        assert process.pinged_s is not None
        waited_s = waiting_s(process.pid, process.thread)
        if before is None or before.at_s != process.pinged_s:
            now_used_s = used_s(process.pid)
            self._pinged[process.pid] = _Pinged(process.pinged_s, waited_s, now_used_s)
            return False
        passed_s = now_s - before.at_s - (waited_s - before.waited_s)
        if process.thread is None:
            # A process that has not started to read is still starting.
            return passed_s > _START_S
        if passed_s <= _SILENT_S:
            return False
        # Code that holds the interpreter uses a processor.
        is_busy = used_s(process.pid) - before.used_s > _SILENT_S / 2
        return is_busy or passed_s > _SILENT_AT_REST_S

    def _is_starved(self, process: EngineProcess, now_s: float) -> bool:
        """Return whether the threads of a process compute, but take no work.

        Native code that computes one value for long does not yield to other statements.
        """
        if process.is_silent or process.has_writes:
            return False
        if process.probed_s is None:
            oldest_s = min(each.began_s for each in process.works.values())
            if now_s - oldest_s > PROBE_AFTER_S:
                process.probe()
                self._probed[process.pid] = used_s(process.pid)
            return False
        if now_s - process.probed_s <= STARVED_S:
            return False
        # On a busy machine it may have had no processor.
        return used_s(process.pid) - self._probed[process.pid] > STARVED_S * STARVED_CORES

    def _has_hung(self, process: EngineProcess, now_s: float) -> bool:
        """Return whether cancelled work continues although it had time to stop."""
        stopped = [each.began_s for each in process.works.values() if each.is_stopped]
        if not stopped or now_s - min(stopped) <= _STOP_S:
            return False
        if now_s - min(stopped) > _LONGEST_STOP_S:
            return True
        used_s, waited_s = times_s(process.pid)
        # On a busy machine it waits for a processor most of the time.
        share = used_s / (used_s + waited_s) if waited_s > used_s else 1.0
        return (now_s - min(stopped)) * share > _STOP_S

    def _look_at_rest(self, seat: Seat, process: EngineProcess, now_s: float) -> None:
        """End a process that keeps computing after its work was cancelled or finished."""
        if not process.has_stopped:
            return
        cpu_s = wanted_s(process.pid)
        start = self._stopped.setdefault(process.pid, IdleStart(now_s, cpu_s))
        idle = self._idle.setdefault(process.pid, Idle())
        idle.look(now_s, cpu_s, active=len(process.works), begun=process.begun)
        is_busy = start.is_busy(now_s, cpu_s, _CALM_S, _CALM_CORES)
        if is_busy is None:
            return
        del self._stopped[process.pid]
        if is_busy and idle.passed_s < _CALM_S:
            # It may be busy with other work, which has done nothing wrong and may finish.
            if seat.is_disposable and process.works:
                seat.retire(process)
            return
        del self._idle[process.pid]
        if is_busy and idle.cores > _CALM_CORES:
            process.kill(Cause.HUNG, "work continued after it was cancelled")
        else:
            process.has_stopped = False


def withdraw_from_silent(process: EngineProcess) -> None:
    """Withdraw work without results: statements, and whatever was not started."""
    for number, work, answer, _ in process.under_way():
        if answer is None or (work.is_begun and not work.is_users):
            continue
        process.abandon(number)
        if not answer.done():
            answer.set_exception(SilentError() if work.is_begun else NotBegunError())


def withdraw_from_starved(process: EngineProcess, since_s: float, before_s: float) -> None:
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


def limit_planning(seat: Seat, process: EngineProcess, now_s: float) -> None:
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
