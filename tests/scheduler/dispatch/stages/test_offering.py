"""An answer that executors offer is whole or an error."""

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    ExecutionError,
    ExecutorLostError,
    OverloadedError,
)
from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols.offers import OfferedPart, OfferOutcome
from caraway_scheduler.dispatch.stages import offering
from caraway_scheduler.dispatch.stages.offering import OfferedStream
from caraway_scheduler.dispatch.tasks.reports import WorkReports
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies

SCHEMA = pa.schema([("n", pa.int64())])
E1, E2 = ExecutorId("e1"), ExecutorId("e2")
PARTS = (OfferedPart("one", E1, "grpc://one"), OfferedPart("two", E2, "grpc://two"))


class OfferingFleet:
    """Executors whose offers end as the test says."""

    def __init__(self) -> None:
        self.outcomes: dict[str, asyncio.Future[OfferOutcome]] = {}
        self.withdrawn: list[tuple[str, str]] = []
        self.lost: list[ExecutorId] = []
        self.suspected: list[ExecutorId] = []
        self.closed: list[tuple[int, int]] = []

    async def attend(self, executor_id: ExecutorId, offer_id: str) -> OfferOutcome:
        return await self._outcome(offer_id)

    async def withdraw(self, executor_id: ExecutorId, offer_id: str, reason: CarawayError) -> None:
        self.withdrawn.append((offer_id, reason.message))

    def ends(self, offer_id: str, outcome: OfferOutcome | Exception) -> None:
        future = self._outcome(offer_id)
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def stream(self) -> OfferedStream:
        async def on_loss(_query_id: QueryId, executor_id: ExecutorId) -> None:
            self.suspected.append(executor_id)

        def on_lost(executor_id: ExecutorId, _cause: str) -> None:
            self.lost.append(executor_id)

        any_fleet: Any = self
        reports = WorkReports(DispatchTallies(), lambda _task: None, on_lost, on_loss)
        return OfferedStream(QueryId("q"), SCHEMA, PARTS, False, any_fleet, reports, self._on_close)

    def _outcome(self, offer_id: str) -> "asyncio.Future[OfferOutcome]":
        return self.outcomes.setdefault(offer_id, asyncio.get_running_loop().create_future())

    def _on_close(self, rows: int, size_bytes: int) -> None:
        self.closed.append((rows, size_bytes))


async def read(stream: OfferedStream) -> None:
    async with asyncio.timeout(60):
        assert [batch async for batch in stream] == []


async def test_the_stream_ends_once_all_parts_were_read() -> None:
    fleet = OfferingFleet()
    stream = fleet.stream()
    fleet.ends("one", OfferOutcome(3, 30))
    fleet.ends("two", OfferOutcome(4, 40))
    await read(stream)
    assert stream.is_at_end and stream.passed == (7, 70) and stream.ended == 2
    assert fleet.closed == [(7, 70)]
    await stream.aclose()
    assert fleet.closed == [(7, 70)], "the end is reported once"


async def test_a_lost_executor_cuts_the_answer_and_withdraws_the_rest() -> None:
    fleet = OfferingFleet()
    stream = fleet.stream()
    fleet.ends("one", ExecutorLostError(E1, "killed"))
    with pytest.raises(AnswerCutError, match="executor 'e1' is lost: killed; run the query again"):
        await read(stream)
    assert fleet.lost == fleet.suspected == [E1]
    assert {"one", "two"} == {offer_id for offer_id, _ in fleet.withdrawn}
    assert "cut short" in fleet.withdrawn[0][1]


async def test_a_part_that_fails_ends_the_others() -> None:
    fleet = OfferingFleet()
    stream = fleet.stream()
    fleet.ends("two", ExecutionError("divided by zero"))
    with pytest.raises(ExecutionError, match="divided by zero"):
        await read(stream)
    assert ("one", "divided by zero") in fleet.withdrawn and fleet.lost == []


async def test_closing_early_withdraws_what_was_not_read() -> None:
    fleet = OfferingFleet()
    stream = fleet.stream()
    fleet.ends("one", OfferOutcome(3, 30))
    await asyncio.sleep(0)
    await stream.aclose()
    assert "the statement was stopped" in dict(fleet.withdrawn)["two"]
    assert len(fleet.closed) == 1 and stream.is_at_end


async def _offer(part: OfferedPart | Exception) -> OfferedPart:
    if isinstance(part, Exception):
        raise part
    return part


async def test_offers_are_made_by_all_executors_or_none() -> None:
    fleet: Any = OfferingFleet()
    assert await offering.make(fleet, [_offer(each) for each in PARTS]) == list(PARTS)
    assert fleet.withdrawn == []
    crowded = [_offer(PARTS[0]), _offer(OverloadedError("too many", 1))]
    assert await offering.make(fleet, crowded) == ()
    nowhere = [_offer(PARTS[0]), _offer(OfferedPart("two", E2, ""))]
    assert await offering.make(fleet, nowhere) == ()
    assert [offer_id for offer_id, _ in fleet.withdrawn] == ["one", "one", "two"]


async def test_a_task_that_fails_before_its_first_row_is_raised() -> None:
    fleet: Any = OfferingFleet()
    with pytest.raises(ExecutionError, match="overflow"):
        await offering.make(fleet, [_offer(PARTS[0]), _offer(ExecutionError("overflow"))])
    assert [offer_id for offer_id, _ in fleet.withdrawn] == ["one"]
