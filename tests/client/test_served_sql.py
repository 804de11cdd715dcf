"""The library against a real standalone server, over both protocols."""

import asyncio
import datetime as dt
import signal
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway import (
    ApiError,
    AsyncClient,
    BrokenResponseError,
    Client,
    InvalidEndpointError,
    UnreachableError,
)
from tests.client.runtime import Pauses, pausing
from tests.kit.deadlines import eventually
from tests.kit.processes import Child, child

MANIFEST = """
version: v1
kind: Caraway
name: test
runtime:
  auth:
    api-key:
      keys: ["reader:ro", "writer:rw"]
"""
TYPES = """
SELECT 9223372036854775807 AS big, -9223372036854775808 AS small,
       CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) AS huge,
       TIMESTAMPTZ '2024-07-01 12:00:00+02:00' AS zoned, DATE '0001-01-01' AS first_day,
       [1, NULL, 3] AS list, struct(1 AS a, ['x'] AS b) AS nested, CAST(NULL AS TEXT) AS nothing
"""
MILLIONS = "SELECT value AS n, repeat('x', 100) AS text FROM generate_series(1, 20000000)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    folder = tmp_path_factory.mktemp("served")
    manifest = folder / "caraway.yaml"
    manifest.write_text(MANIFEST)
    with child(folder, manifest) as runtime:
        yield runtime


# Any: keyword arguments of a client.
def urls(server: Child, *protocols: str) -> dict[str, Any]:
    known = {
        "http_url": f"http://{server.addresses['http']}",
        "flight_url": f"grpc://{server.addresses['flight']}",
    }
    return {name: url if name in protocols else "" for name, url in known.items()}


@pytest.fixture(params=["http_url", "flight_url"])
def client(server: Child, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of one protocol only."""
    with pausing(Pauses(), "reader", **urls(server, request.param)) as client:
        yield client


@pytest.fixture
def both(server: Child) -> Iterator[Client]:
    with Client("writer", **urls(server, "http_url", "flight_url")) as client:
        yield client


def test_values_keep_their_types(client: Client) -> None:
    result = client.sql(TYPES)

    (row,) = result.to_pylist()
    assert (row["big"], row["small"]) == (2**63 - 1, -(2**63))
    assert row["huge"] == Decimal("9" * 38)
    assert row["zoned"] == dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)
    assert row["first_day"] == dt.date(1, 1, 1)
    assert row["list"] == [1, None, 3]
    assert row["nested"] == {"a": 1, "b": ["x"]}
    assert row["nothing"] is None
    assert "<table>" in result._repr_html_()


def test_an_empty_result_keeps_its_columns(client: Client) -> None:
    result = client.sql("SELECT 1 AS a, 'x' AS b WHERE false")

    assert (result.num_rows, result.column_names) == (0, ["a", "b"])


def test_columns_may_share_a_name(client: Client) -> None:
    result = client.sql("SELECT * FROM (SELECT 1 AS a) x, (SELECT 2 AS a) y")

    assert result.column_names == ["a", "a"]
    assert [column.to_pylist() for column in result.columns] == [[1], [2]]


def test_mistakes_have_the_same_status_and_text_over_both_protocols(server: Child) -> None:
    told = []
    for protocol in ("http_url", "flight_url"):
        with Client("reader", **urls(server, protocol)) as client:
            with pytest.raises(ApiError) as caught:
                client.sql("SELEC 1")
            told.append((caught.value.status, caught.value.message))
    assert told[0][0] == 400
    assert told[0] == told[1]


@pytest.mark.parametrize("key", ["wrong", ""])
@pytest.mark.parametrize("protocol", ["http_url", "flight_url"])
def test_a_wrong_key_is_401(server: Child, protocol: str, key: str) -> None:
    with Client(key, **urls(server, protocol)) as client, pytest.raises(ApiError) as caught:
        client.sql("SELECT 1")
    assert caught.value.status == 401


def test_a_reader_holds_few_rows_and_can_stop(client: Client) -> None:
    before = pa.total_allocated_bytes()
    with client.reader(MILLIONS) as reader:
        for batch in reader:
            assert batch.schema == reader.schema
            assert pa.total_allocated_bytes() - before < 64 * 1024 * 1024
            if reader.rows_read > 500_000:
                break


def test_parameters_are_bound_by_the_server(client: Client) -> None:
    given = {"n": 12345678901234567890, "d": dt.date(2024, 1, 2), "s": "'; DROP TABLE x"}

    found = client.sql("SELECT :n AS n, CAST(:d AS DATE) AS d, :s AS s", given)

    assert found.to_pylist() == [{**given, "n": Decimal(12345678901234567890)}]
    assert client.sql("SELECT $1 + $2 AS n", [1, 2])["n"].to_pylist() == [3]
    for limit in (1, 3):
        assert client.sql("SELECT * FROM generate_series(1, 9) LIMIT $1", [limit]).num_rows == limit
    for parameters in ([], [1, 2], {"a": 1}):
        with pytest.raises(ApiError, match="parameter") as caught:
            client.sql("SELECT $1 AS n", parameters)
        assert caught.value.status == 400


def test_parameters_over_flight_keep_their_type(server: Child) -> None:
    with Client("reader", **urls(server, "flight_url")) as client:
        (row,) = client.sql(
            "SELECT $1 AS b, arrow_typeof($1) AS b_kind, arrow_typeof($2) AS d_kind",
            [b"\xff", dt.date(2024, 1, 2)],
        ).to_pylist()
    assert row == {"b": b"\xff", "b_kind": "Binary", "d_kind": "Date32"}


def test_sql_json_has_the_documented_fields(both: Client) -> None:
    found = both.sql_json("SELECT 1 AS a")

    assert found["data"] == [{"a": 1}]
    assert found.keys() == {"data", "schema", "row_count", "execution_time_ms"}


@pytest.mark.parametrize("ask", [lambda c: c.nsql("how many?"), lambda c: c.search("tea")])
def test_routes_that_the_server_lacks_are_errors(
    both: Client, ask: Callable[[Client], object]
) -> None:
    with pytest.raises(ApiError) as caught:
        ask(both)
    assert caught.value.status in (400, 404, 501)


def test_a_job_gives_a_table(both: Client) -> None:
    query = both.query("SELECT value AS n FROM generate_series(1, 5) ORDER BY n")

    assert query.wait(30).has_succeeded
    assert query.results()["n"].to_pylist() == [1, 2, 3, 4, 5]
    assert query.id in {each["query_id"] for each in both.list_queries()}


def test_a_job_needs_no_http(server: Child) -> None:
    with Client("writer", **urls(server, "flight_url")) as client:
        query = client.query(f"{MILLIONS} WHERE value <= $1 ORDER BY n", [300_000])
        assert query.wait(30).has_succeeded
        assert query.results()["n"].to_pylist() == list(range(1, 300_001))
        assert client.open_query(query.id).status().status == "SUCCEEDED"
        failed = client.query("SELECT 1 / (value - 5) FROM generate_series(1, 9)")
        assert failed.wait(30).status == "FAILED"
        with pytest.raises(ApiError, match="division by zero"):
            failed.results()
        long = client.query(f"{MILLIONS} WHERE value <> 18")
        assert long.cancel().is_over
        for refused in (client.list_queries, query.chunks().__next__):
            with pytest.raises(InvalidEndpointError, match="set http_url"):
                refused()
        with pytest.raises(ApiError) as caught:
            client.open_query("01hzzzzzzzzzzzzzzzzzzzzzzz").status()
        assert caught.value.status in (400, 404)


def test_active_statements_are_listed_and_cancelled(both: Client) -> None:
    with both.reader(MILLIONS) as reader:
        active = [each for each in both.active_queries() if "20000000" in each["sql_preview"]]
        both.cancel_active_query(active[0]["query_id"])
        with pytest.raises(ApiError, match="cancel"):
            for _ in reader:
                pass


def test_health_and_readiness(both: Client) -> None:
    assert both.is_service_healthy()
    assert both.is_service_ready()


async def test_the_async_client_has_the_same_answers(server: Child) -> None:
    async with AsyncClient("writer", **urls(server, "http_url", "flight_url")) as client:
        one, two = await asyncio.gather(
            client.sql("SELECT 1 AS n"), client.sql("SELECT :n AS n", {"n": 2})
        )
        assert (one["n"].to_pylist(), two["n"].to_pylist()) == ([1], [2])
        async with await client.reader(MILLIONS) as reader:
            async for batch in reader:
                assert batch.num_rows > 0
                break
        query = await client.query("SELECT 3 AS n")
        states: list[str] = []
        assert (await query.wait(30, lambda state: states.append(state.status))).has_succeeded
        assert states[-1] == "SUCCEEDED"
        assert (await query.results())["n"].to_pylist() == [3]
        assert await client.is_service_ready()
        with pytest.raises(ApiError):
            await client.sql("SELEC 1")


async def test_a_cancelled_task_cancels_its_statement(server: Child) -> None:
    async with AsyncClient("writer", **urls(server, "http_url", "flight_url")) as client:
        begun = asyncio.Event()
        reading = asyncio.create_task(
            client.sql(
                f"{MILLIONS} WHERE value <> 17",
                on_data=lambda _batch: begun.set(),
            )
        )
        await begun.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

        async def has_ended() -> bool:
            running = await client.active_queries()
            return not any("<> 17" in each["sql_preview"] for each in running)

        await eventually(has_ended, "the cancelled statement ends on the server")


@pytest.mark.parametrize("protocol", ["http_url", "flight_url"])
def test_a_server_that_dies_never_gives_a_short_answer(tmp_path: Path, protocol: str) -> None:
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text("version: v1\nkind: Caraway\nname: test\n")
    with child(tmp_path, manifest) as runtime:
        with Client(**urls(runtime, protocol), max_retries=0) as client:
            with client.reader(MILLIONS) as reader:
                next(iter(reader))
                runtime.signal(signal.SIGKILL)
                with pytest.raises((BrokenResponseError, UnreachableError, ApiError)):
                    for _ in reader:
                        pass
            with pytest.raises((UnreachableError, BrokenResponseError)):
                client.sql("SELECT 1")
