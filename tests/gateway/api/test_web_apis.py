"""Datasets behind APIs in a running runtime, alone and with executors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.api.view_files import write
from tests.kit import api_server
from tests.kit.api_server import ApiAnswer, ApiServer
from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

PRICES = [{"id": number, "price": number / 4} for number in range(1_000)]
JOIN = "SELECT count(*) AS n, sum(price) AS p FROM prices JOIN orders USING (id) WHERE v = 'v3'"
EXPECTED = [{"n": 20, "p": sum(number / 4 for number in range(3, 100, 5))}]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server.running() as made:
        made.answers["/prices"] = api_server.pages(PRICES, 300)
        yield made


def manifest(server: ApiServer) -> str:
    return f"""
    datasets:
      - {{from: 'file:orders.parquet', name: orders}}
      - from: {server.url}/prices
        name: prices
        params: {{pagination_offset_param: offset, http_auth_token: '${{secrets:TOKEN}}'}}
      - {{from: 'localpod:prices', name: kept, acceleration: {{enabled: true}}}}
    """


async def rows(runtime: Running, sql: str) -> object:
    async def look() -> object:
        answer = await runtime.sql(sql)
        return answer.json() if answer.status_code == 200 else None

    return await eventually(look, f"{sql} is answered")


async def test_an_api_is_joined_with_files_and_copied(server: ApiServer, tmp_path: Path) -> None:
    write(tmp_path, 100)
    async with running(tmp_path, manifest(server), {"TOKEN": "hidden"}) as runtime:
        assert await rows(runtime, JOIN) == EXPECTED
        assert await rows(runtime, "SELECT count(*) AS n FROM kept") == [{"n": 1_000}]
        assert {each.headers["authorization"] for each in server.requests} == {"Bearer hidden"}
        server.answers["/prices"] = lambda _: ApiAnswer({}, 404)
        answer = await runtime.sql("SELECT sum(id) AS s FROM prices")
        assert answer.status_code >= 400 and "does not exist (404)" in answer.text
        assert "hidden" not in answer.text
        assert await rows(runtime, "SELECT count(*) AS n FROM kept") == [{"n": 1_000}]


async def test_an_api_is_read_once_by_executors(server: ApiServer, tmp_path: Path) -> None:
    write(tmp_path, 100)
    text = manifest(server).replace("${secrets:TOKEN}", "t")
    async with clustered(tmp_path, text) as cluster:
        assert await rows(cluster.runtime, JOIN) == EXPECTED
        server.requests.clear()
        sql = "SELECT count(*) AS n, min(price) AS p FROM prices"
        assert await rows(cluster.runtime, sql) == [{"n": 1_000, "p": 0.0}]
        offsets = [each.params["offset"] for each in server.requests]
        assert offsets == ["0", "300", "600", "900", "1000"]
        assert await rows(cluster.runtime, "SELECT count(*) AS n FROM kept") == [{"n": 1_000}]


async def test_an_append_asks_for_new_rows_only(server: ApiServer, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [{"id": 1, "at": "2026-01-01T00:00:00Z"}]
    server.answers["/items"] = lambda request: ApiAnswer(
        [each for each in items if each["at"] > request.params.get("since", "")]
    )
    text = f"""
    datasets:
      - from: {server.url}/items
        name: items
        params: {{filter_params: "at>since"}}
        columns: [{{name: at, type: timestamp with time zone}}]
        time_column: at
        acceleration: {{enabled: true, refresh_mode: append, refresh_check_interval: 1h}}
    """
    async with running(tmp_path, text) as runtime:
        assert await rows(runtime, "SELECT id FROM items") == [{"id": 1}]
        items.append({"id": 2, "at": "2026-01-02T00:00:00Z"})

        async def has_two() -> bool:
            await runtime.api.post("/v1/datasets/items/acceleration/refresh")
            return await rows(runtime, "SELECT id FROM items ORDER BY id") == [{"id": 1}, {"id": 2}]

        await eventually(has_two, "the new row is read")
        sinces = {each.params.get("since") for each in server.requests}
        assert "2026-01-01T00:00:00Z" in sinces
