"""The API over an in-memory job service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa

from caraway_gateway.services import Services
from caraway_scheduler.jobs.model import Job
from tests.kit.jobs import FakeJobService, with_jobs
from tests.kit.runtime import Running, running

KEYS = "runtime: {auth: {api-key: {keys: ['reader:ro', 'writer:rw']}}}\n"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)


def rows(first: int, count: int) -> pa.RecordBatch:
    """Return rows whose ids start at `first`."""
    ids = range(first, first + count)
    return pa.record_batch(
        [
            pa.array(ids, pa.int64()),
            [f"n{i}" for i in ids],
            pa.array([0] * count, pa.timestamp("us", "UTC")),
        ],
        schema=SCHEMA,
    )


@dataclass(frozen=True, slots=True)
class Serving:
    """The runtime under test; `tail` is the part of a URL after `/v1/queries`."""

    api: httpx.AsyncClient
    service: FakeJobService
    services: Services

    async def get(self, tail: str = "", **headers: str) -> httpx.Response:
        return await self.api.get(f"/v1/queries{tail}", headers=headers)

    async def post(self, tail: str = "", json: Any = None, **headers: str) -> httpx.Response:
        return await self.api.post(f"/v1/queries{tail}", json=json, headers=headers)

    async def submit(self, sql: str = "SELECT 1", **headers: str) -> Job:
        """Submit a query as a client does."""
        response = await self.post(json={"sql": sql}, **headers)
        assert response.status_code == 202, response.text
        return self.service.last

    async def succeeded(self, *chunks: pa.RecordBatch, schema: pa.Schema = SCHEMA) -> Job:
        """Submit a query and let it succeed with these chunks."""
        return self.service.succeed(await self.submit(), schema, *chunks)


@asynccontextmanager
async def serving(folder: Path, manifest: str = "") -> AsyncIterator[Serving]:
    service = FakeJobService()
    async with serving_over(folder, service, manifest) as runtime:
        yield Serving(runtime.api, service, runtime.services)
        assert service.open_reads == 0


@asynccontextmanager
async def serving_over(
    folder: Path, service: FakeJobService, manifest: str = ""
) -> AsyncIterator[Running]:
    async with running(folder, manifest, altered=lambda made: with_jobs(made, service)) as runtime:
        yield runtime
