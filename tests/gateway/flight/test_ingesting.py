"""Rows that are uploaded by DoPut."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from adbc_driver_manager import OperationalError
from pyarrow import flight

from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_core.tables import TableSpec
from caraway_gateway.flight import FlightEndpoint, arriving, ingesting, uploads
from caraway_gateway.flight.sql import messages
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from caraway_gateway.flight.uploads import UploadRoom
from caraway_serving.flight.statuses import Unavailable
from tests.gateway.api.accelerating import at_version
from tests.gateway.api.change_manifests import TAKING
from tests.gateway.api.writing import LOGGED, filled, ready
from tests.gateway.flight.relay import Relay, relayed
from tests.gateway.flight.serving import (
    ANY_PORT,
    KEYS,
    Serving,
    bearer,
    client,
    command,
    query,
    serving,
)
from tests.gateway.flight.sql.driving import drive, put, read
from tests.kit.deadlines import until
from tests.kit.engine import memory
from tests.kit.runtime import Running, running

ROWS = pa.table({"s": ["y", None], "a": [2, 3]})
TABLES: dict[str, TableSpec | str] = {"t": memory(a=[1], s=["x"]), "sales.o": memory(a=[1])}
BROKEN = 200
WRITABLE = ("t", "sales.o")
PATH = flight.FlightDescriptor.for_path("t")
ALL = "SELECT a, s FROM t ORDER BY a"
Options = proto.CommandStatementIngest.TableDefinitionOptions


@pytest.mark.parametrize("descriptor", [PATH, command("t")])
async def test_rows_are_appended_by_the_names_of_their_columns(
    descriptor: flight.FlightDescriptor,
) -> None:
    async with serving(TABLES, writable=WRITABLE) as server:
        (said,) = await server.ask(put(descriptor, ROWS))
        assert json.loads(said) == {"count": 2}
        rows = await server.ask(query(ALL))
        assert rows.to_pydict() == {"a": [1, 2, 3], "s": ["x", "y", None]}
        assert server.services.tallies.query_executions[("flight",)] == 3


async def test_a_dataset_without_writes_refuses_an_upload_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read_it(*_: object) -> None:
        raise AssertionError("the upload was read")

    monkeypatch.setattr(uploads, "received", read_it)
    async with serving(TABLES, writable=("sales.o",)) as server:
        with pytest.raises(flight.FlightUnauthorizedError, match="`access: read_write`"):
            await server.ask(put(PATH, ROWS))


async def test_too_many_uploads_in_a_second_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingesting, "MOST_A_SECOND", 0.001)
    async with serving(TABLES, writable=WRITABLE) as server:
        await server.ask(put(PATH, ROWS))
        with pytest.raises(flight.FlightUnavailableError, match="uploads a second"):
            await server.ask(put(PATH, ROWS))
        runtime = server.services.manifest.current.runtime
        settings = replace(runtime.flight, do_put_rate_limit_enabled=False)
        unlimited: Any = SimpleNamespace(runtime=replace(runtime, flight=settings))
        server.services.manifest.current = unlimited
        await server.ask(put(PATH, ROWS))


async def test_dataset_in_a_schema_columns_left_out_and_no_rows() -> None:
    async with serving(TABLES, writable=WRITABLE) as server:
        path = flight.FlightDescriptor.for_path("sales", "o")
        await server.ask(put(path, pa.table({"a": [5]})))
        assert (await server.ask(query("SELECT sum(a) AS n FROM sales.o"))).to_pydict() == {
            "n": [6]
        }
        await server.ask(put(PATH, pa.table({"a": [9]})))
        assert (await server.ask(query(ALL))).to_pydict() == {"a": [1, 9], "s": ["x", None]}
        (said,) = await server.ask(put(PATH, ROWS.slice(0, 0)))
        assert json.loads(said) == {"count": 0}


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int8(), pa.utf8()), pa.large_string()])
async def test_strings_of_any_layout_fit(kind: pa.DataType) -> None:
    rows = pa.table({"a": [2], "s": pa.array(["y"]).cast(kind)})
    async with serving(TABLES, writable=WRITABLE) as server:
        await server.ask(put(PATH, rows))
        assert (await server.ask(query(ALL))).to_pydict() == {"a": [1, 2], "s": ["x", "y"]}


LISTS = pa.array([["y", None]])
STRUCTS = pa.struct([("n", pa.large_string()), ("m", pa.null())])


@pytest.mark.parametrize(
    "sent",
    [
        LISTS.cast(pa.large_list(pa.large_string())),
        LISTS.cast(pa.list_(pa.field("element", pa.string_view()))),
        pa.array([None], pa.list_(pa.null())),
    ],
    ids=lambda each: str(each.type),
)
async def test_lists_of_any_layout_fit(sent: pa.Array) -> None:
    """Those of polars are large."""
    async with serving({"t": memory(l=[["x"]])}, writable=WRITABLE) as server:
        await server.ask(put(PATH, pa.table({"l": sent})))
        rows = await server.ask(query("SELECT l FROM t"))
    assert rows.to_pydict() == {"l": [["x"], sent.to_pylist()[0]]}


async def test_structures_of_any_layout_fit_but_not_with_other_fields() -> None:
    async with serving({"t": memory(s=[{"n": "x", "m": 1}])}, writable=WRITABLE) as server:
        sent = pa.array([{"n": "y", "m": None}], STRUCTS)
        await server.ask(put(PATH, pa.table({"s": sent})))
        for other in ([{"n": "y"}], [{"n": "y", "o": 1}], [{"n": "y", "m": "1"}]):
            with pytest.raises(pa.ArrowInvalid, match="column 's' of dataset 't' is struct"):
                await server.ask(put(PATH, pa.table({"s": other})))
        rows = await server.ask(query("SELECT s FROM t"))
    assert rows.to_pydict() == {"s": [{"n": "x", "m": 1}, {"n": "y", "m": None}]}


async def test_an_upload_without_columns_is_refused() -> None:
    rows = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    async with serving(TABLES, writable=WRITABLE) as server:
        with pytest.raises(pa.ArrowInvalid, match="the upload has no columns"):
            await server.ask(put(PATH, pa.Table.from_batches([rows])))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"a": ["2"]}, "column 'a' of dataset 't' is int64, but the upload has string"),
        ({"b": [2]}, "dataset 't' has no column 'b'; it has 'a', 's'"),
        ({"A": [2]}, "no column 'A'"),
    ],
)
async def test_other_columns_are_refused_by_name(rows: dict[str, Any], says: str) -> None:
    async with serving(TABLES, writable=WRITABLE) as server:
        with pytest.raises(pa.ArrowInvalid, match=says):
            await server.ask(put(PATH, pa.table(rows)))
        assert (await server.ask(query(ALL))).num_rows == 1


@pytest.mark.parametrize(
    ("descriptor", "key", "error", "says"),
    [
        (PATH, "reader", flight.FlightUnauthorizedError, "only read"),
        (flight.FlightDescriptor.for_path("fixed"), "writer", flight.FlightUnauthorizedError,
         "read_write"),
        (flight.FlightDescriptor.for_path("none"), "writer", KeyError, "no dataset 'none'"),
        (flight.FlightDescriptor.for_path("a", "b", "c"), "writer", pa.ArrowInvalid, "name the"),
        (command(b"\xff"), "writer", pa.ArrowInvalid, "UTF-8"),
        (command(""), "writer", pa.ArrowInvalid, "name the dataset"),
    ],
)  # fmt: skip
async def test_uploads_that_cannot_be_written(
    descriptor: flight.FlightDescriptor, key: str, error: type[Exception], says: str
) -> None:
    tables = {**TABLES, "fixed": memory(a=[1], s=["x"])}
    async with serving(tables, writable=WRITABLE, keys=KEYS) as server:
        with pytest.raises(error, match=says):
            await server.ask(put(descriptor, ROWS, bearer(key)))


async def test_upload_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caraway_gateway.flight.ingesting.MOST_BYTES", 1024)
    rows = pa.table({"a": list(range(1000))})
    async with serving(TABLES, writable=WRITABLE) as server:
        with pytest.raises(pa.ArrowInvalid, match="none of these is written"):
            await server.ask(put(PATH, rows))
        assert (await server.ask(query(ALL))).num_rows == 1


def test_uploads_share_memory_and_give_it_back() -> None:
    room = UploadRoom(100)
    with room.share() as first:
        first(60)
        with pytest.raises(Unavailable, match="use all memory"), room.share() as second:
            second(30)
            second(30)
        first(40)
    with room.share() as third:
        third(100)


async def test_message_that_is_too_large_is_refused() -> None:
    async with serving(TABLES, writable=WRITABLE, max_message_bytes=1024) as server:
        await server.ask(put(PATH, pa.table({"a": list(range(100))})))
        with pytest.raises(pa.ArrowInvalid, match=r"flight[.]max_message_size"):
            await server.ask(put(PATH, pa.table({"a": list(range(1000))})))
        assert (await server.ask(query(ALL))).num_rows == 101


async def test_nothing_of_a_broken_upload_is_seen_or_left() -> None:
    async with serving(TABLES, writable=WRITABLE) as server, relayed(server.address) as relay:
        await server.ask(query(ALL))
        before = threading.active_count()
        for _ in range(BROKEN):
            # In a thread that goes with its client: a client has threads of its own.
            await asyncio.to_thread(break_off, relay, server)
        await server.idle()
        await asyncio.to_thread(until, lambda: threading.active_count() <= before + 4, "no threads")
        assert (await server.ask(query(ALL))).num_rows == 1


def break_off(relay: Relay, server: Serving) -> None:
    looked = server.services.tallies.query_executions
    begun = looked["flight",]
    with client(relay.address) as connected:
        writer, _ = connected.do_put(PATH, ROWS.schema, flight.FlightCallOptions(timeout=30))
        for _ in range(3):
            writer.write_table(ROWS)
        until(lambda: looked["flight",] > begun, "the upload is being read")
        relay.cut()
        with pytest.raises(pa.ArrowException):
            while True:
                writer.write_table(ROWS)
        with contextlib.suppress(pa.ArrowException):
            writer.close()


def driver_ingest(rows: pa.Table, name: str = "t", **options: Any) -> Any:
    def use(connection: Any) -> int:
        with connection.cursor() as cursor:
            return int(cursor.adbc_ingest(name, rows, **options))

    return use


async def test_driver_appends_and_replaces() -> None:
    async with serving(TABLES, writable=WRITABLE) as server:
        assert await drive(server, driver_ingest(ROWS, mode="append")) == 2
        assert (await server.ask(query(ALL))).num_rows == 3
        assert await drive(server, driver_ingest(ROWS, mode="replace")) == 2
        assert (await server.ask(query(ALL))).to_pydict() == {"a": [2, 3], "s": ["y", None]}
        rows = pa.table({"a": [7]})
        options = {"mode": "append", "db_schema_name": "sales"}
        assert await drive(server, driver_ingest(rows, "o", **options)) == 1
        with pytest.raises(Exception, match="'t' is not created: uploads create no datasets"):
            await drive(server, driver_ingest(ROWS, mode="create"))
        with pytest.raises(Exception, match="'u'"):
            await drive(server, driver_ingest(ROWS, "u", mode="create_append"))
        with pytest.raises(Exception, match="temporary tables"):
            await drive(server, driver_ingest(ROWS, mode="append", temporary=True))


async def test_driver_appends_no_rows() -> None:
    rows = pa.record_batch(ROWS.slice(0, 0).to_pydict(), ROWS.schema)
    async with serving(TABLES, writable=WRITABLE) as server:
        assert await drive(server, driver_ingest(rows, mode="append")) == 0
        assert (await server.ask(query(ALL))).num_rows == 1
        # Without a batch the driver sends no message, not even the name of the table. If this
        # fails, the driver has changed: take the sentence about it out of the documentation.
        with pytest.raises(OperationalError, match="Stream finished before first message sent"):
            await drive(server, driver_ingest(ROWS.schema.empty_table(), mode="append"))


async def test_ingestion_that_says_too_little_is_refused() -> None:
    bare = proto.CommandStatementIngest(table="t")
    elsewhere = proto.CommandStatementIngest(table="t", catalog="other")
    async with serving(TABLES, writable=WRITABLE) as server:
        with pytest.raises(pa.ArrowInvalid, match="append or replace"):
            await server.ask(put(command(messages.packed(bare)), ROWS))
        with pytest.raises(KeyError, match="no catalog 'other'"):
            await server.ask(put(command(messages.packed(elsewhere)), ROWS))


@asynccontextmanager
async def endpoint_of(runtime: Running) -> AsyncIterator[Serving]:
    loop = asyncio.get_running_loop()
    endpoint = FlightEndpoint(runtime.services, loop, ANY_PORT, None)
    try:
        yield Serving(endpoint, runtime.services, endpoint.start())
    finally:
        await endpoint.stop(5)


async def test_accelerated_dataset_is_read_by_the_next_statement(tmp_path: Path) -> None:
    async with running(tmp_path, TAKING) as runtime:
        await at_version(runtime, 1)
        async with endpoint_of(runtime) as server:
            orders = flight.FlightDescriptor.for_path("orders")
            for number in range(1, 4):
                (said,) = await server.ask(put(orders, pa.table({"id": [number, 9]})))
                assert json.loads(said) == {"count": 2}
                found = await server.ask(query("SELECT count(*) AS n FROM orders"))
                assert found.to_pydict() == {"n": [2 * number]}
            behind = await runtime.own("SELECT count(*) AS n FROM caraway_source.orders")
            assert behind == [{"n": 6}]


async def test_dataset_with_a_log_has_its_keys_checked(tmp_path: Path) -> None:
    rows = pa.table({"id": [11, 12], "v": ["a", None], "n": [0.5, None]})
    async with running(tmp_path, LOGGED) as runtime:
        await filled(runtime)
        async with endpoint_of(runtime) as server:
            for name in ("items", "notes"):
                path = flight.FlightDescriptor.for_path(name)
                (said,) = await server.ask(put(path, rows))
                assert json.loads(said) == {"count": 2}
                found = await server.ask(query(f"SELECT * FROM {name} WHERE id > 10 ORDER BY id"))
                assert found.to_pydict() == rows.to_pydict()
            path = flight.FlightDescriptor.for_path("items")
            more = pa.table({"id": [13, 12]})
            with pytest.raises(pa.ArrowInvalid, match="two rows with id = 12"):
                await server.ask(put(path, more))
            found = await server.ask(query("SELECT count(*) AS n FROM items"))
            assert found.to_pydict() == {"n": [7]}
            keys = proto.CommandGetPrimaryKeys(table="items")
            assert (await server.ask(read(keys))).column("column_name").to_pylist() == ["id"]


def replacing(name: str, rows: pa.Table) -> Any:
    """Replace the rows of a dataset by those of an upload."""
    exists = Options(if_exists=Options.TABLE_EXISTS_OPTION_REPLACE)
    message = proto.CommandStatementIngest(table=name, table_definition_options=exists)
    return put(command(messages.packed(message)), rows)


@pytest.mark.parametrize("is_early", [False, True], ids=["whole", "early"])
@pytest.mark.parametrize("name", ["items", "notes"])
async def test_rows_of_a_dataset_with_a_log_are_replaced_by_one_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_early: bool
) -> None:
    if is_early:
        monkeypatch.setattr(arriving, "ENTRY_BYTES", 1)
    found = query(f"SELECT id FROM {name} ORDER BY id")
    stored = asyncio.Event()

    async def dies(*_: object) -> None:
        stored.set()
        await asyncio.Event().wait()

    async with running(tmp_path, LOGGED) as runtime:
        await filled(runtime)
        async with endpoint_of(runtime) as server:
            with monkeypatch.context() as patched:
                # Its process ends when the entry is stored, and before it counts.
                patched.setattr(CurrentVersion, "flip", dies)
                asking = asyncio.create_task(server.ask(replacing(name, pa.table({"id": [7]}))))
                await stored.wait()
                assert (await server.ask(found))["id"].to_pylist() == [1, 2, 3, 4, 5]
        asking.cancel()
    async with running(tmp_path, LOGGED) as runtime:
        await ready(runtime)
        async with endpoint_of(runtime) as server:
            assert (await server.ask(found))["id"].to_pylist() == [1, 2, 3, 4, 5]
            if name == "items":
                with pytest.raises(pa.ArrowInvalid, match="two rows with id = 7"):
                    await server.ask(replacing(name, pa.table({"id": [7, 7]})))
                assert (await server.ask(found)).num_rows == 5
            for ids in ([1, 7], [], [3]):
                rows = pa.table({"id": pa.array(ids, pa.int64())})
                (said,) = await server.ask(replacing(name, rows))
                assert messages.parse(proto.DoPutUpdateResult, said).record_count == len(ids)
                assert (await server.ask(found))["id"].to_pylist() == ids
