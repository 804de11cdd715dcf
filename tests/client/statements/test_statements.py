"""Retries of statements, the change from Flight to HTTP, and the encoding of parameters."""

import datetime as dt
import decimal
import json
import uuid
from collections.abc import Callable
from typing import Any

import numpy
import pyarrow as pa
import pytest

from caraway.errors import ApiError, BrokenResponseError, InvalidEndpointError, UnreachableError
from caraway.statements.statements import StatementRunner, encode_statement, statement_request
from caraway_core.errors import CarawayError, ParametersError
from tests.client.rows.row_sources import SCHEMA, Source, batch

READ, WRITE = "SELECT 1", "INSERT INTO t VALUES (1)"
AWAY = UnreachableError("grpc://h", "refused")
BUSY = ApiError(503, "busy", 0.5)


class Pump(Source):
    def __init__(self, error: BaseException | None, has_started: bool) -> None:
        super().__init__(batch(1))
        self.has_started = has_started
        self._begin_error = error

    def read_schema(self) -> pa.Schema:
        if self._begin_error is not None:
            raise self._begin_error
        return SCHEMA


class Flight:
    """A transport that fails with each of the errors in turn, then answers."""

    def __init__(self, *errors: BaseException, has_started: bool = False) -> None:
        self._errors = list(errors)
        self._has_started = has_started
        self.asked = 0

    def open(self, sql: str, timeout_s: float | None, parameters: Any) -> Pump:
        self.asked += 1
        return Pump(self._errors.pop(0) if self._errors else None, self._has_started)


class Http:
    """A transport whose answers are Arrow streams, or an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error
        self.asked = 0

    def chunks(self, request: Any, policy: Any) -> Any:
        self.asked += 1
        if self._error is not None:
            raise self._error
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA) as writer:
            writer.write_batch(batch(7))
        yield sink.getvalue().to_pybytes()


def runner(
    flight: Flight | None, http: Http | None = None, **options: Any
) -> tuple[StatementRunner, list[float]]:
    slept: list[float] = []
    transport: Any = http
    made: Callable[[], Any] | None = (lambda: flight) if flight is not None else None
    return StatementRunner(transport, made, slept.append, **options), slept


@pytest.mark.parametrize("sql", [READ, WRITE])
def test_a_statement_that_the_server_cannot_have_begun_is_tried_again(sql: str) -> None:
    flight = Flight(AWAY)
    running, slept = runner(flight)
    assert running.open(sql).read_all().table.num_rows == 1
    assert flight.asked == 2 and len(slept) == 1


@pytest.mark.parametrize("error", [AWAY, BUSY, BrokenResponseError("cut")])
def test_a_write_that_may_have_been_done_is_never_tried_again(error: BaseException) -> None:
    flight, http = Flight(error, has_started=True), Http()
    running, slept = runner(flight, http)
    with pytest.raises(type(error)):
        running.open(WRITE)
    assert (flight.asked, http.asked, slept) == (1, 0, [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 422])
@pytest.mark.parametrize("sql", [READ, WRITE])
def test_an_answer_of_the_server_is_final(status: int, sql: str) -> None:
    flight, http = Flight(ApiError(status, "no")), Http()
    running, slept = runner(flight, http)
    with pytest.raises(ApiError, match="no"):
        running.open(sql)
    assert (flight.asked, http.asked, slept) == (1, 0, [])


@pytest.mark.parametrize("error", [AWAY, ApiError(501, "no Flight"), BUSY])
def test_http_is_the_other_way(error: BaseException) -> None:
    flight, http = Flight(error), Http()
    running, _ = runner(flight, http)
    assert running.open(READ).read_all().table.column("n").to_pylist() == [7]
    assert (flight.asked, http.asked) == (1, 1)


def test_without_leave_there_is_no_other_way() -> None:
    flight, http = Flight(AWAY), Http()
    running, slept = runner(flight, http, allows_fallback=False, max_retries=0)
    with pytest.raises(UnreachableError):
        running.open(READ)
    assert (http.asked, slept) == (0, [])


def test_attempts_end_and_waits_are_those_that_the_server_asks_for() -> None:
    flight = Flight(*[BUSY] * 10)
    running, slept = runner(flight, max_retries=2)
    with pytest.raises(ApiError, match="busy"):
        running.open(READ)
    assert flight.asked == 3 and len(slept) == 2 and all(each >= 0.5 for each in slept)


def test_without_any_way_the_missing_one_is_named() -> None:
    running, _ = runner(None)
    with pytest.raises(InvalidEndpointError, match="set http_url"):
        running.open(READ)


@pytest.mark.parametrize(
    ("sql", "error"),
    [("SELECT '\ud800'", CarawayError), (b"SELECT 1", TypeError), (None, TypeError)],
)
def test_a_text_that_cannot_be_sent_is_refused_before_anything_is_sent(
    sql: Any, error: type[Exception]
) -> None:
    flight, http = Flight(), Http()
    running, _ = runner(flight, http)
    with pytest.raises(error):
        running.open(sql)
    assert (flight.asked, http.asked) == (0, 0)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (1, 1), (True, True), (None, None), ("a'b\n", "a'b\n"), (1.5, 1.5), (2**63, 2**63),
        ([1, [2]], [1, [2]]), ({"a": 1}, {"a": 1}),
        (decimal.Decimal("1.50"), "1.50"), (dt.date(2024, 2, 3), "2024-02-03"),
        (dt.datetime(2024, 2, 3, 4, 5, tzinfo=dt.UTC), "2024-02-03 04:05:00+00:00"),
        (dt.time(4, 5), "04:05:00"), (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (numpy.int64(7), 7), (numpy.float32(0.5), 0.5), (numpy.array([1, 2]), [1, 2]),
        (numpy.bool_(True), True),
    ],
)  # fmt: skip
def test_values_are_sent_in_a_form_that_the_server_can_cast(given: Any, sent: Any) -> None:
    for parameters in ({"x": given}, [given]):
        content, kind = encode_statement("SELECT :x", parameters)
        found = json.loads(content)["parameters"]
        assert kind == "application/json"
        assert (found["x"] if isinstance(found, dict) else found[0]) == sent


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "given",
    [
        float("nan"), float("inf"), -float("inf"), b"\x00", bytearray(b"x"), memoryview(b"x"),
        CYCLE, [b"x"], {"a": {"b": float("nan")}}, {(1, 2): 3}, {b"x": 1},
    ],
)  # fmt: skip
def test_values_that_have_no_form_are_refused_by_name(given: Any) -> None:
    with pytest.raises(ParametersError):
        encode_statement("SELECT :x", {"x": given})


def test_a_value_that_is_nested_too_deep_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ParametersError):
        encode_statement("SELECT :x", {"x": deep})


@pytest.mark.parametrize("parameters", [None, {}, [], ()])
def test_a_statement_without_parameters_is_sent_as_text(parameters: Any) -> None:
    assert encode_statement("SELECT 'ä'", parameters) == ("SELECT 'ä'".encode(), "text/plain")


@pytest.mark.parametrize("parameters", ["text", b"bytes", {1, 2}, 7, (n for n in [1])])
def test_parameters_of_another_kind_are_refused(parameters: Any) -> None:
    with pytest.raises(ParametersError, match=r"a mapping, such as .* or a list"):
        statement_request("SELECT 1", parameters, "text/plain")
