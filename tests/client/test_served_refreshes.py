"""The client against the real API, with a real accelerated dataset."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway.client import Client
from caraway.errors import ApiError
from caraway.routes.refreshes import AccelerationStatus, RefreshError
from caraway_gateway.composition import app
from tests.kit.listening import listening
from tests.kit.runtime import running

T = TypeVar("T")
MANIFEST = """
    datasets:
      - {from: 'file:orders.parquet', name: plain}
      - from: file:orders.parquet
        name: orders
        acceleration: {enabled: true, refresh_retry_enabled: false}
"""


def write(folder: Path, rows: int) -> None:
    pq.write_table(pa.table({"id": range(rows)}), folder / "orders.parquet")


class Served:
    """A runtime. `ask` runs a client in a thread, since the client blocks."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    async def ask(self, question: Callable[[Client], T]) -> T:
        def blocking() -> T:
            with Client(http_url=self._endpoint) as client:
                return question(client)

        async with asyncio.timeout(20):
            return await asyncio.to_thread(blocking)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Served]:
    write(folder, 10)
    async with running(folder, MANIFEST) as runtime:
        async with listening(app.build_api(runtime.services)) as endpoint:
            yield Served(endpoint)


def refreshed(client: Client, sql: str | None = None) -> AccelerationStatus:
    before = client.acceleration("orders")
    assert "orders" in client.refresh_acceleration("orders", refresh_sql=sql)
    *_, last = client.watch_refresh("orders", before)
    return last


async def test_a_refresh_has_finished_once_its_rows_are_read(tmp_path: Path) -> None:
    async with served(tmp_path) as server:

        def ask(client: Client) -> None:
            for rows in (20, 30, 40):
                write(tmp_path, rows)
                found = refreshed(client)
                assert found.rows == rows
                assert client.sql("SELECT count(*) AS n FROM orders").to_pylist() == [{"n": rows}]

        await server.ask(ask)


async def test_a_failed_refresh_has_a_reason_and_the_next_one_recovers(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as server:
        first = await server.ask(refreshed)
        (tmp_path / "orders.parquet").write_bytes(b"broken")
        for _ in range(2):
            with pytest.raises(RefreshError, match="is damaged or is not a parquet file"):
                await server.ask(refreshed)
        assert (await server.ask(lambda c: c.acceleration("orders")))["version"]["rows"] == 10
        write(tmp_path, 20)
        mended = await server.ask(refreshed)
        assert (mended.version, mended.rows, mended.error) == (first.version + 1, 20, "")


async def test_sql_of_one_refresh_and_of_later_ones(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        some = "SELECT * FROM orders WHERE id < 4"
        assert (await server.ask(lambda c: refreshed(c, some))).rows == 4
        assert (await server.ask(refreshed)).rows == 10
        await server.ask(lambda c: c.set_refresh_sql("orders", some))
        assert (await server.ask(refreshed)).rows == 4
        await server.ask(lambda c: c.set_refresh_sql("orders", None))
        assert (await server.ask(refreshed)).rows == 4, "None changes nothing"


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [("plain", 400, "not accelerated"), ("nowhere", 404, "no dataset 'nowhere'")],
)
async def test_a_dataset_that_cannot_be_refreshed_is_reported(
    tmp_path: Path, name: str, status: int, says: str
) -> None:
    async with served(tmp_path) as server:
        with pytest.raises(ApiError, match=says) as refused:
            await server.ask(lambda c: c.refresh_acceleration(name))
        assert refused.value.status == status
