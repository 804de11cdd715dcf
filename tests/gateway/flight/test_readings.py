"""Answers that wait for their reader."""

import asyncio
from typing import Any

import pytest

from caraway_core.ids import PrincipalId, QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_gateway.flight import readings
from caraway_gateway.flight.readings import FlightReading, WaitingRoom
from caraway_gateway.services import Services
from caraway_scheduler.queries import service
from caraway_scheduler.queries.answers import LiveRows
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving import spans
from caraway_serving.access import ANONYMOUS, Principal
from tests.gateway.flight.serving import serving

MILLION = "SELECT value FROM generate_series(1, 1000000)"


OTHER = Principal(PrincipalId("other"), may_write=True)


def reading(services: Services, sql: str, who: Principal = ANONYMOUS) -> FlightReading:
    return FlightReading(services, QueryRequest(sql, who, spans.start(None), protocol="flight"))


async def rows(of: FlightReading | None) -> list[dict[str, Any]]:
    assert of is not None
    taken = []
    while batches := await of.read_batches():
        taken += [row for batch in batches for row in batch.to_pylist()]
    return taken


async def test_answer_is_given_away_once_and_to_its_owner() -> None:
    async with serving() as server:
        room = WaitingRoom(None)
        query_id = await room.open(reading(server.services, "SELECT 1 AS one"))
        assert room.take_reading(query_id, PrincipalId("somebody else")) is None
        assert await rows(room.take_reading(query_id, ANONYMOUS.id)) == [{"one": 1}]
        assert room.take_reading(query_id, ANONYMOUS.id) is None


async def test_answer_that_is_whole_is_taken_by_any_thread() -> None:
    async with serving() as server:
        room = WaitingRoom(None)
        running = await room.open(reading(server.services, MILLION))
        whole = await room.open(reading(server.services, "SELECT 1 AS one"))

        def take(query_id: QueryId, principal: PrincipalId = ANONYMOUS.id) -> list[Any]:
            found = room.take_whole(query_id, principal)
            return [] if found is None else found.take_whole()

        assert await asyncio.to_thread(take, running) == []
        assert await asyncio.to_thread(take, whole, PrincipalId("somebody else")) == []
        [batch] = await asyncio.to_thread(take, whole)
        assert batch.to_pylist() == [{"one": 1}]
        assert (
            await asyncio.to_thread(take, whole) == []
            and room.take_reading(whole, ANONYMOUS.id) is None
        )
        room.tidy(whole)
        assert len(room) == 1
        room.clear()
        await asyncio.wait_for(room.wait_empty(), 60)


async def test_texts_stay_plain_and_batches_large(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as server:
        streams: list[BatchStream] = []

        def live(stream: BatchStream, *others: Any) -> LiveRows:
            streams.append(stream)
            return LiveRows(stream, *others)

        monkeypatch.setattr(service, "LiveRows", live)
        started = reading(server.services, "SELECT 'a' AS one")
        await started.open()
        [traits] = [each.traits for each in streams]
        assert traits.takes_plain and traits.takes_uncut
        assert await rows(started) == [{"one": "a"}]


async def test_short_answer_holds_no_place_while_it_waits() -> None:
    async with serving(max_running=1) as server:
        room = WaitingRoom(1)
        await room.open(reading(server.services, "SELECT 1"))
        assert server.services.queries.admission.running == 0
        room.clear()


async def test_answer_that_nobody_fetches_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "_WAIT_S", 0.01)
    async with serving() as server:
        room = WaitingRoom(None)
        query_id = await room.open(reading(server.services, MILLION))
        await server.idle()
        assert room.take_reading(query_id, ANONYMOUS.id) is None
        (error,) = server.services.history.table(None).column("error_message").to_pylist()
        assert error == "the client did not fetch the rows"


async def test_waiting_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine the first would expire before the last one comes.
    monkeypatch.setattr(readings, "_WAIT_S", 600)
    async with serving() as server:
        room = WaitingRoom(4)
        for _ in range(5):
            await room.open(reading(server.services, MILLION))
        for _ in range(readings._MOST_WHOLE + 5):
            await room.open(reading(server.services, "SELECT 1"))
        assert len(room) == 2 + readings._MOST_WHOLE
        room.clear()
        assert len(server.services.queries.active) == 0


async def test_answers_of_one_key_make_no_others_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "_WAIT_S", 600)
    async with serving() as server:
        room = WaitingRoom(4)
        waiting = await room.open(reading(server.services, "SELECT 2", OTHER))
        for _ in range(readings._MOST_WHOLE + 5):
            await room.open(reading(server.services, "SELECT 1"))
        assert room.take_reading(waiting, ANONYMOUS.id) is None
        assert room.take_reading(waiting, OTHER.id) is not None
        room.clear()
        assert (len(room.quota), room.quota.evictions) == (0, 6)


async def test_closing_twice_does_no_harm() -> None:
    async with serving() as server:
        started = reading(server.services, MILLION)
        await started.open()
        started.close()
        started.close()
        assert await started.read_batches() == []
        await server.idle()
