"""The statuses and messages of errors at a client."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core import errors
from caraway_core.errors.outcomes import FailureKind
from caraway_serving import spans
from caraway_serving.flight import statuses
from tests.gateway.flight.serving import KEYS, bearer, command, headers, query, serving
from tests.kit.engine import memory


@pytest.mark.parametrize(
    ("sql", "error", "says"),
    [
        ("SELEC 1", pa.ArrowInvalid, "SELEC"),
        ("SELECT * FROM nothing", pa.ArrowInvalid, "nothing"),
        (" ", pa.ArrowInvalid, "the statement is empty"),
        ("SELECT 1 / 0", pa.ArrowInvalid, "zero"),
        ("DROP TABLE t", pa.ArrowInvalid, "not supported"),
        ("INSERT INTO t VALUES (1)", flight.FlightUnauthorizedError, "read_write"),
    ],
)
async def test_wrong_statement_says_what_is_wrong(
    sql: str, error: type[Exception], says: str
) -> None:
    async with serving({"t": memory(a=[1])}) as server:
        with pytest.raises(error, match=says) as failed:
            await server.ask(query(sql))
    assert "Traceback" not in str(failed.value)
    assert ".py" not in str(failed.value)


async def test_read_only_key_cannot_write() -> None:
    tables = {"t": memory(a=[1])}
    sql = "INSERT INTO t VALUES (2)"
    async with serving(tables, writable=("t",), keys=KEYS) as server:
        for ask in (
            query(sql, bearer("reader")),
            lambda c: c.do_get(flight.Ticket(sql), bearer("reader")).read_all(),
        ):
            with pytest.raises(flight.FlightUnauthorizedError):
                await server.ask(ask)
        assert (await server.ask(query(sql, bearer("writer")))).to_pylist() == [{"count": 1}]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda c: list(c.do_action(("PollFlightInfo", b""))), "ListActions names"),
        (lambda c: _exchange(c), "yet; send the SQL text"),
    ],
)
async def test_what_is_not_there_yet_names_what_is(ask: Callable[[Any], object], says: str) -> None:
    async with serving() as server:
        with pytest.raises(pa.ArrowNotImplementedError, match=says) as failed:
            await server.ask(ask)
    assert "Traceback" not in str(failed.value)


@pytest.mark.parametrize(
    ("descriptor", "says"),
    [
        (flight.FlightDescriptor.for_path("t"), "descriptors with a path"),
        (flight.FlightDescriptor.for_command(b"\xff\xfe"), "not UTF-8"),
    ],
)
async def test_descriptor_without_sql_is_invalid(
    descriptor: flight.FlightDescriptor, says: str
) -> None:
    async with serving() as server:
        with pytest.raises(pa.ArrowInvalid, match=says):
            await server.ask(lambda c: c.get_flight_info(descriptor))


async def test_stopping_runtime_is_unavailable() -> None:
    async with serving() as server:
        await server.services.queries.stop(1)
        with pytest.raises(flight.FlightUnavailableError, match="Runtime is shutting down"):
            await server.ask(query("SELECT 1"))


async def test_schema_of_a_wrong_statement_shows_no_traceback() -> None:
    async with serving(keys=KEYS) as server:
        for sql in ("SELEC 1", "DROP TABLE t"):
            wrong = command(sql)
            with pytest.raises(pa.ArrowException) as failed:
                await server.ask(partial(_schema, wrong))
            assert "Traceback" not in str(failed.value)


async def test_fault_of_ours_names_the_trace_and_nothing_else(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    options = headers(traceparent=f"00-{trace}-b7ad6b7169203331-01")
    async with serving() as server:
        monkeypatch.setattr(server.services.queries, "recall", lambda _request: 1 / 0)
        with pytest.raises(flight.FlightInternalError, match=trace) as failed:
            await server.ask(query("SELECT 1", options))
    assert "division" not in str(failed.value)
    assert "ZeroDivisionError" in caplog.text


async def test_long_message_is_cut_so_that_it_arrives() -> None:
    async with serving() as server:
        with pytest.raises(pa.ArrowInvalid, match="ééé"):
            await server.ask(query(f'SELECT "{"é" * 4_000}"'))


async def test_request_larger_than_a_body_may_be_is_refused() -> None:
    async with serving(max_body_bytes=100) as server:
        with pytest.raises(pa.ArrowInvalid, match="larger than 100 bytes"):
            await server.ask(query("SELECT " + "1" * 100))
        action = flight.Action("GetAsyncQueryStatus", b" " * 101)
        with pytest.raises(pa.ArrowInvalid, match="larger than 100 bytes"):
            await server.ask(lambda connected: list(connected.do_action(action)))


def test_every_kind_has_a_status() -> None:
    assert set(statuses.STATUS) == set(FailureKind)


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (errors.OverloadedError("full", 1), flight.FlightUnavailableError),
        (errors.OutOfMemoryQueryError("big"), flight.FlightInternalError),
        (errors.ExecutionError("broken"), flight.FlightInternalError),
        (errors.QueryTimeoutError("slow"), flight.FlightTimedOutError),
        (errors.QueryCancelledError("stop"), flight.FlightCancelledError),
    ],
)
def test_errors_keep_their_words(raised: errors.CarawayError, error: type[Exception]) -> None:
    with pytest.raises(error, match=raised.message), statuses.answered(spans.start(None)):
        raise raised


def _schema(descriptor: flight.FlightDescriptor, connected: Any) -> Any:
    return connected.get_schema(descriptor, bearer("reader"))


def _exchange(connected: Any) -> None:
    writer, reader = connected.do_exchange(flight.FlightDescriptor.for_path("t"))
    try:
        reader.read_chunk()
    finally:
        with contextlib.suppress(pa.ArrowException):
            writer.close()
