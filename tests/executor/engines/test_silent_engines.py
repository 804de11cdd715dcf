"""Engine processes that do not answer, or do not stop."""

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from caraway_core.ids import TableName, new_query_id
from caraway_core.statements import Statement
from caraway_executor.engines import trials, watching
from caraway_executor.engines.causes import Cause
from caraway_executor.engines.seats import Seat
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, snapshot
from tests.kit.engine_pools import (
    are_processes,
    be_patient,
    engines,
    has_ended,
    has_work,
    is_gone,
    is_retired,
    opened,
    read,
    rows,
    stop,
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


async def test_process_that_does_not_answer_keeps_nobody_waiting() -> None:
    async with engines() as made:
        (stuck,) = made.processes
        await stop(stuck)
        # Work that it has not begun goes to another process, and it is left without work.
        assert await rows(made, "SELECT 1 AS n") == [{"n": 1}]
        assert stuck.is_silent
        await eventually(lambda: is_gone(stuck.pid), "the silent process is gone")
        assert not made.restarts and len(made.suspects) == 0


async def test_process_that_is_silent_for_long_finishes_what_it_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_REST_S", 0.0)
    async with engines() as made:
        (slow,) = made.processes
        stream = await opened(made, "SELECT n FROM big")
        await stop(slow)
        assert await rows(made, "SELECT 2 AS n") == [{"n": 2}]
        assert slow in made.processes and slow.is_silent
        await eventually(lambda: is_retired(made, slow), "it rested for too long")
        os.kill(slow.pid, signal.SIGCONT)
        assert len(await read(stream)) == 100_000
        await eventually(lambda: is_gone(slow.pid), "it is gone after its last statement")


async def test_process_that_does_not_stop_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_STOP_S", 0.2)
    monkeypatch.setattr(watching, "_LONGEST_STOP_S", 0.5)
    monkeypatch.setattr(watching, "_SILENT_S", 60.0)
    async with engines() as made:
        (stuck,) = made.processes
        await stop(stuck)
        cancelled = asyncio.create_task(rows(made, "SELECT count(*) FROM big"))
        await eventually(lambda: has_work(stuck), "the statement is sent")
        cancelled.cancel()
        await eventually(lambda: has_ended(made, Cause.HUNG), "the process was ended")
        assert made.restarts == {Cause.HUNG: 1}


async def test_catalog_is_installed_though_the_process_is_silent() -> None:
    async with engines() as made:
        await stop(made.processes[0])
        assert await made.install(snapshot({"t": memory(n=[7])}, version=2)) == {}
        assert await rows(made, "SELECT n FROM t") == [{"n": 7}]


async def test_process_that_answers_again_soon_has_its_place_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_REST_S", 60.0)
    async with engines() as made:
        (slow,) = made.processes
        await stop(slow)
        assert await rows(made, "SELECT 1 AS n") == [{"n": 1}]
        assert slow in made.processes
        os.kill(slow.pid, signal.SIGCONT)
        await eventually(lambda: are_processes(made, [slow]), "the other one is gone")
        assert await rows(made, "SELECT 2 AS n") == [{"n": 2}]
        assert made.processes == [slow] and not slow.is_silent


@pytest.mark.parametrize("change", ["catalog", "write"])
async def test_process_that_missed_something_does_not_get_its_place_back(change: str) -> None:
    async with engines() as made:
        (slow,) = made.processes
        await stop(slow)
        if change == "catalog":
            await made.install(snapshot({"t": memory(n=[7])}, version=2))
        else:
            writable = frozenset({TableName("t")})
            await rows(made, "INSERT INTO t VALUES (1)", may_write=True, writable=writable)
        os.kill(slow.pid, signal.SIGCONT)
        await eventually(lambda: is_gone(slow.pid), "it came to its end")
        assert await rows(made, "SELECT sum(n) AS n FROM t") == [{"n": 7}]


LONG = "ab" * 30_000


NATIVE = "SELECT max(levenshtein(s, reverse(s) || $1)) AS n FROM long"
"""Computes one value for many seconds, without a pause and without the interpreter."""


async def test_statements_go_on_while_native_code_keeps_all_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_SILENT_S", 60.0)
    catalog = snapshot({"t": memory(n=[1, 2, 3]), "long": memory(s=[LONG] * 100)})
    async with engines(catalog) as made:
        # Each has its own text, so that none is answered by what another one left.
        hostile = [
            asyncio.ensure_future(rows(made, NATIVE, parameters={"1": each})) for each in "xyz"
        ]
        for number in range(20):
            found = await rows(made, f"SELECT sum(n) + {number} AS n FROM t WHERE n > 0")
            assert found == [{"n": 6 + number}]
        for each in hostile:
            each.cancel()
        await asyncio.wait(hostile)


async def test_a_seat_whose_turn_is_over_is_shared_with_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trials, "_TURN_S", 0.0)
    catalog = snapshot({"t": memory(n=[1, 2, 3]), "long": memory(s=[LONG] * 100)})
    async with engines(catalog) as made:

        async def alone(sql: str, **parameters: str) -> list[dict[str, Any]]:
            statement = Statement(sql, parameters)
            return await read(await made.execute(new_query_id(), statement, is_suspect=True))

        seats = made.trials.seats
        hostile = [
            asyncio.ensure_future(alone(NATIVE, **{"1": str(number)}))
            for number in range(2 * len(seats))
        ]
        await eventually(lambda: are_occupied(seats), "each seat has two of them")
        assert await alone("SELECT sum(n) AS n FROM t") == [{"n": 6}]
        for each in hostile:
            each.cancel()
        await asyncio.wait(hostile)


async def are_occupied(seats: Sequence[Seat]) -> bool:
    return all(sum(len(process.works) for process in seat.processes) == 2 for seat in seats)
