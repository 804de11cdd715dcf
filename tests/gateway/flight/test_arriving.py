"""Uploads whose rows are stored while they arrive."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core.ids import TableName
from caraway_core.settings import Address
from caraway_gateway.flight import FlightEndpoint, arriving
from tests.gateway.api.writing import LOGGED, filled
from tests.gateway.flight.relay import relayed
from tests.gateway.flight.serving import ANY_PORT, Serving, client, query
from tests.gateway.flight.sql.driving import put
from tests.kit.deadlines import until
from tests.kit.processes import Child, child
from tests.kit.runtime import Running, running

NOTES = flight.FlightDescriptor.for_path("notes")
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.float64())])
COUNT = "SELECT count(*) AS n, sum(id) AS s FROM notes"


def rows(first: int, count: int) -> pa.RecordBatch:
    ids = list(range(first, first + count))
    return pa.record_batch([ids, [f"row {n}" for n in ids], [n / 2 for n in ids]], schema=SCHEMA)


@contextmanager
def serving_flight(runtime: Running) -> Iterator[Serving]:
    endpoint = FlightEndpoint(runtime.services, asyncio.get_running_loop(), ANY_PORT, None)
    yield Serving(endpoint, runtime.services, endpoint.start())


def chunks_in(folder: Path) -> set[Path]:
    """Return the stored chunks of a data directory."""
    return set(folder.rglob("*.arrow"))


def logged(runtime: Running) -> int:
    """Return the number of entries in the log that statements read."""
    shown = runtime.services.accelerations.shown(TableName("notes"))
    assert shown is not None
    return int(shown[1].partition(":")[0])


async def holds_chunks(folder: Path, expected: set[Path]) -> None:
    await asyncio.to_thread(until, lambda: chunks_in(folder) == expected, "nothing is left")


async def test_an_upload_of_several_entries_is_one_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving, "ENTRY_BYTES", 1000)
    batches = [rows(100 * number, 100) for number in range(9)] + [rows(900, 1)]
    async with running(tmp_path, LOGGED) as runtime:
        await filled(runtime)
        before = logged(runtime)
        with serving_flight(runtime) as server:
            await server.ask(put(NOTES, pa.Table.from_batches(batches)))
            found = await server.ask(query("SELECT * FROM notes ORDER BY n NULLS FIRST, id"))
            await server.endpoint.stop(5)
        assert found.num_rows == 5 + 901
        assert logged(runtime) == before + len(batches)
        sent = await runtime.own(
            "SELECT count(*) AS n, sum(id) AS s FROM notes WHERE v LIKE 'row %'"
        )
        assert sent == [{"n": 901, "s": sum(range(901))}]


async def test_nothing_of_a_broken_upload_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving, "ENTRY_BYTES", 1)
    async with running(tmp_path, LOGGED) as runtime:
        await filled(runtime)
        before = chunks_in(tmp_path)
        with serving_flight(runtime) as server:
            async with relayed(server.address) as relay:

                def break_off() -> None:
                    with client(relay.address) as connected:
                        writer, _ = connected.do_put(NOTES, SCHEMA)
                        writer.write_batch(rows(0, 10))
                        until(lambda: chunks_in(tmp_path) > before, "rows are stored")
                        relay.cut()
                        with pytest.raises(pa.ArrowException):
                            writer.write_batch(rows(10, 10))
                            writer.close()

                await asyncio.to_thread(break_off)
                await holds_chunks(tmp_path, before)
                assert (await server.ask(query(COUNT)))["n"].to_pylist() == [5]
            await server.endpoint.stop(5)


async def test_a_value_that_does_not_fit_refuses_what_is_stored_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving, "ENTRY_BYTES", 1)
    drops = LOGGED.replace("primary_key: id", "primary_key: id, on_conflict: {id: drop}")
    async with running(tmp_path, drops) as runtime:
        await filled(runtime)
        before = chunks_in(tmp_path)
        without_id = pa.record_batch([[None], ["x"], [0.0]], schema=SCHEMA)
        with serving_flight(runtime) as server:

            def send() -> None:
                with client(server.address) as connected:
                    path = flight.FlightDescriptor.for_path("items")
                    writer, _ = connected.do_put(path, SCHEMA)
                    with writer:
                        writer.write_batch(rows(0, 10))
                        until(lambda: chunks_in(tmp_path) > before, "rows are stored")
                        writer.write_batch(without_id)

            with pytest.raises(pa.ArrowInvalid, match="column 'id' may not be NULL"):
                await asyncio.to_thread(send)
            await holds_chunks(tmp_path, before)
            count = await server.ask(query("SELECT count(*) AS n FROM items"))
            assert count["n"].to_pylist() == [5]
            await server.endpoint.stop(5)


@pytest.mark.full
def test_a_runtime_that_is_killed_during_an_upload_has_none_of_it(tmp_path: Path) -> None:
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(f"version: v1\nkind: Caraway\nname: killed\n{_dedented(LOGGED)}")
    data = tmp_path / "data"
    with child(tmp_path, manifest, "--flight", "127.0.0.1:0") as runtime:
        uploads(runtime, [rows(1, 3)])
        before = chunks_in(data)

        def killed(writer: Any) -> None:
            until(lambda: len(chunks_in(data) - before) >= 2, "a part of it is stored")
            os.killpg(runtime.process.pid, signal.SIGKILL)
            runtime.wait()

        parts = [rows(1000 * number, 1000) for number in range(2000)]
        with pytest.raises(pa.ArrowException):
            uploads(runtime, parts, killed)
    with child(tmp_path, manifest, "--flight", "127.0.0.1:0") as runtime:
        until(lambda: told(runtime) == [{"n": 3, "s": 6}], "what was acknowledged is read")
        uploads(runtime, parts)
        assert told(runtime) == [{"n": 2_000_003, "s": 6 + sum(range(2_000_000))}]
    with child(tmp_path, manifest, "--flight", "127.0.0.1:0") as runtime:
        until(lambda: bool(told(runtime)), "the dataset is loaded")
        assert told(runtime) == [{"n": 2_000_003, "s": 6 + sum(range(2_000_000))}]


def told(runtime: Child) -> Any:
    answer = runtime.sql(COUNT)
    return answer.json() if answer.status_code == 200 else []


def uploads(
    runtime: Child, batches: list[pa.RecordBatch], then: Callable[[Any], None] | None = None
) -> None:
    """Send rows; `then` is called before the end of the upload."""
    host, _, port = runtime.addresses["flight"].rpartition(":")
    with client(Address(host, int(port))) as connected:
        writer, reader = connected.do_put(NOTES, SCHEMA)
        with writer:
            for batch in batches:
                writer.write_batch(batch)
            if then is not None:
                then(writer)
            writer.done_writing()
            assert reader.read() is not None


def _dedented(text: str) -> str:
    return "\n".join(line.removeprefix("        ") for line in text.splitlines())
