"""The client against the real API, with jobs in memory."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway.client import Client
from caraway.errors import ApiError, BrokenResponseError
from caraway.rows.formats import ResultFormat
from caraway.statements.queries import QueryProgress
from caraway_core.errors import StateAwayError
from caraway_gateway.composition import app
from caraway_scheduler.jobs.model import JobProgress
from tests.client.runtime import Pauses, pausing
from tests.gateway.api.queries.serving import SCHEMA, rows
from tests.kit.jobs import FakeJobService, with_jobs
from tests.kit.listening import listening
from tests.kit.runtime import running

T = TypeVar("T")


class Served:
    """A runtime and its jobs. `ask` runs a client in a thread, since the client blocks."""

    def __init__(self, service: FakeJobService, endpoint: str) -> None:
        self.service = service
        self._endpoint = endpoint

    async def ask(self, question: Callable[[Client], T], sleep: Callable[[float], None]) -> T:
        def blocking() -> T:
            with pausing(sleep, http_url=self._endpoint) as client:
                return question(client)

        return await asyncio.to_thread(blocking)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Served]:
    service = FakeJobService()
    async with running(folder, "", altered=lambda made: with_jobs(made, service)) as runtime:
        async with listening(app.build_api(runtime.services)) as endpoint:
            yield Served(service, endpoint)
    assert service.open_reads == 0


async def test_a_query_from_submission_to_rows(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        asked = asyncio.create_task(
            server.ask(lambda c: c.query("SELECT $1", [7]).results().to_pylist(), Pauses())
        )
        async with asyncio.timeout(10):
            await server.service.waiting.wait()
        job = server.service.last
        assert job.request.parameters == {"1": 7}
        server.service.succeed(job, SCHEMA, rows(0, 2_000), rows(2_000, 3_000))
        found = await asked
    assert [row["id"] for row in found] == list(range(5_000))


async def test_each_format_can_be_read_back(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        query_id = await server.ask(lambda c: c.query("SELECT 1").id, Pauses())
        server.service.succeed(server.service.last, SCHEMA, rows(0, 2_000), rows(2_000, 3_000))

        async def fetched(form: ResultFormat) -> bytes:
            return await server.ask(
                lambda c: b"".join(c.open_query(query_id).chunks(form)), Pauses()
            )

        arrow = pa.ipc.open_stream(await fetched(ResultFormat.ARROW)).read_all()
        parquet = pq.read_table(io.BytesIO(await fetched(ResultFormat.PARQUET)))
        objects = json.loads(await fetched(ResultFormat.JSON))
        csv = (await fetched(ResultFormat.CSV)).splitlines()
    assert arrow.schema == SCHEMA
    assert arrow.to_pylist() == parquet.to_pylist()
    assert [row["id"] for row in objects] == list(range(5_000))
    assert len(csv) == 5_001


async def test_a_submission_survives_an_outage_and_runs_once(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        server.service.failure = StateAwayError("the state store is away", 1)
        pauses = Pauses()

        def back_again(seconds: float) -> None:
            pauses(seconds)
            server.service.failure = None

        await server.ask(lambda c: c.query("SELECT 1"), back_again)
        assert pauses.seconds == [1]
        assert len(await server.ask(lambda c: c.list_queries(), Pauses())) == 1


async def test_a_running_query_is_listed_and_cancelled(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        query_id = await server.ask(lambda c: c.query("SELECT 1").id, Pauses())
        server.service.run(server.service.last)
        server.service.progresses[server.service.last.job_id] = JobProgress(1, 2, 3, 4, 5, 6)
        running = await server.ask(lambda c: c.open_query(query_id).status(), Pauses())
        assert running.progress == QueryProgress(1, 2, 3, 4, 5, 6)
        (listed,) = await server.ask(lambda c: c.list_queries("running"), Pauses())
        assert listed["query_id"] == query_id
        ended = await server.ask(lambda c: c.open_query(query_id).cancel(), Pauses())
        assert ended.status == "CANCELLED"
        with pytest.raises(ApiError, match="was cancelled") as refused:
            await server.ask(lambda c: c.open_query(query_id).results(), Pauses())
        assert refused.value.status == 410


async def test_a_damaged_chunk_breaks_the_response(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        query_id = await server.ask(lambda c: c.query("SELECT 1").id, Pauses())
        server.service.succeed(server.service.last, SCHEMA, rows(0, 10_000), rows(10_000, 10_000))
        server.service.damaged_from = 1
        with pytest.raises(BrokenResponseError, match="is incomplete"):
            await server.ask(lambda c: c.open_query(query_id).results(), Pauses())


async def test_closing_the_results_stops_reading_the_store(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        query_id = await server.ask(lambda c: c.query("SELECT 1").id, Pauses())
        batches = [rows(i * 10_000, 10_000) for i in range(200)]
        server.service.succeed(server.service.last, SCHEMA, *batches)

        def first(client: Client) -> int:
            found = client.open_query(query_id).reader()
            batch = found.read_next_batch()
            found.close()
            assert batch is not None
            return int(batch["id"][0].as_py())

        assert await server.ask(first, Pauses()) == 0
        # The server reads no faster than the client, so most batches were never read.
        assert server.service.reads < 150
