"""A runtime that cannot go on answers the requests that it has before it ends."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from caraway_core import manifest as manifests
from caraway_core.errors import CarawayError
from caraway_core.process.data_directory import DataDirectory
from caraway_core.settings import Address, RunOptions
from caraway_gateway.composition import backend
from caraway_gateway.composition.runtime import Runtime
from tests.kit.deadlines import eventually
from tests.kit.engine_processes import fork_server

MANIFEST = (
    "version: v1\nkind: Caraway\nname: kept\nruntime: {shutdown_timeout: 100ms}\ndatasets: []\n"
)
ENDLESS = "SELECT sum(value) FROM generate_series(1, 1000000000000)"
ANY_PORT = Address("127.0.0.1", 0)


class Keeper:
    """Something that a runtime keeps, until it fails."""

    def __init__(self) -> None:
        self.must_fail = asyncio.Event()

    async def keep(self) -> None:
        await self.must_fail.wait()
        raise CarawayError("Ray cannot disconnect")


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Keeper:
    kept, standalone = Keeper(), backend.standalone
    monkeypatch.setattr(
        backend, "standalone", lambda *given: replace(standalone(*given), keepers=(kept.keep,))
    )
    return kept


@contextlib.asynccontextmanager
async def served(
    folder: Path,
) -> AsyncIterator[tuple[httpx.AsyncClient, "asyncio.Task[None]", str]]:
    """Yield a client of a runtime, the runtime, and the URL of its metrics port."""
    file = folder / "caraway.yaml"
    file.write_text(MANIFEST)
    reader, writer = os.pipe()
    options = RunOptions(
        file, ANY_PORT, ANY_PORT, ANY_PORT, folder / "data", log_format="json", ready_fd=writer
    )
    runtime, is_up = Runtime(options, manifests.load(file), engines=fork_server()), asyncio.Event()
    runtime.on_up = is_up.set
    with DataDirectory(options.data_dir) as data, os.fdopen(reader) as ready:
        running = asyncio.create_task(runtime.serve(data))
        up = asyncio.create_task(is_up.wait())
        await asyncio.wait((running, up), return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        addresses = json.loads(ready.readline())
        url, metrics = (f"http://{addresses[name]}" for name in ("http", "metrics"))
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            yield client, running, metrics


async def test_requests_of_a_runtime_that_cannot_go_on_are_answered(
    tmp_path: Path, keeper: Keeper
) -> None:
    async with served(tmp_path) as (client, running, metrics):

        async def is_measured() -> bool:
            page = (await client.get(f"{metrics}/metrics")).text
            return "\ndata_directory_size_bytes " in page

        await eventually(is_measured, "the size of the data directory")
        asking = asyncio.create_task(client.post("/v1/sql", content=ENDLESS))

        async def runs() -> bool:
            return bool((await client.get("/v1/sql/active")).json()["total_count"])

        await eventually(runs, "the statement runs")
        keeper.must_fail.set()
        answer = await asking
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "shutting down" in answer.text
        with pytest.raises(CarawayError, match="Ray cannot disconnect"):
            await running
