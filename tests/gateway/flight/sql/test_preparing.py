"""Prepared statements are described, bound and run for each row."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, cast

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core.errors import InvalidQueryError, ParametersError
from caraway_core.ids import PrincipalId
from caraway_core.sqltext import placeholders
from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.sql import messages
from caraway_gateway.flight.sql.prepared import PreparedStatement, PreparedStatements
from caraway_gateway.flight.sql.preparing import Preparing, handle_of, refuse_transaction
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from caraway_gateway.flight.sql.running import UNKNOWN_COUNT
from caraway_gateway.flight.statements import COUNTED, Statements
from caraway_gateway.flight.uploads import UploadRoom
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving.access import Principal
from caraway_serving.flight.statuses import NotFound, Unimplemented

COLUMNS = pa.schema([("n", pa.int64())])
CONTEXT = cast(flight.ServerCallContext, None)
WRITE = "INSERT INTO t VALUES ($1)"


class _Statements:
    """Answers as a query service would, and notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[QueryRequest] = []
        self.refuses: set[object] = set()
        self.is_typed = True

    def wait(self, work: Coroutine[Any, Any, Any], _context: object) -> Any:
        return asyncio.run(work)

    async def begun_schema(self, request: QueryRequest) -> pa.Schema:
        self.asked.append(request)
        if None in request.parameters.values() or "nonsense" in request.sql:
            raise InvalidQueryError("it cannot be planned")
        return COLUMNS

    async def parameters(self, _request: QueryRequest) -> Mapping[str, pa.DataType]:
        if not self.is_typed:
            raise InvalidQueryError("it cannot be planned")
        return {"1": pa.int64()}

    async def collected(self, request: QueryRequest) -> pa.Table:
        self.asked.append(request)
        if self.refuses & set(request.parameters.values()):
            raise InvalidQueryError("a value is wrong")
        if request.sql.startswith("SELECT"):
            return pa.table({"n": [1, 2]})
        return pa.table({"count": pa.array([2], pa.uint64())}, COUNTED)


class _Kept:
    def __init__(self) -> None:
        self.statements, self.prepared = _Statements(), PreparedStatements()
        self.preparing = Preparing(
            cast(Statements, self.statements), self.prepared, 1 << 20, UploadRoom()
        )

    def keep(self, sql: str, rows: pa.Table | None = None, by: str = "one") -> str:
        principal = PrincipalId(by)
        handle = self.prepared.add(PreparedStatement(sql, principal, placeholders.find(sql)))
        if rows is not None:
            self.prepared.bind(handle, principal, rows)
        return handle

    def described(self, sql: str) -> Any:
        packed = self.preparing.keep(CONTEXT, caller(), sql)
        return messages.read_as(proto.ActionCreatePreparedStatementResult, packed)


def caller(name: str = "one") -> Caller:
    return Caller(Principal(PrincipalId(name), may_write=True), {})


def read(schema: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(schema))


def test_a_statement_is_described_by_its_columns() -> None:
    kept = _Kept()
    made = kept.described("SELECT n FROM t")

    assert read(made.dataset_schema) == COLUMNS
    assert made.parameter_schema == b""
    assert kept.prepared.find(handle_of(made), PrincipalId("one")).sql == "SELECT n FROM t"
    assert "LIMIT 0" in kept.statements.asked[0].sql
    assert kept.statements.asked[0].protocol == "flightsql"


def test_parameters_are_described_where_null_is_no_value() -> None:
    made = _Kept().described("SELECT n FROM t LIMIT $1")

    assert made.dataset_schema == b""
    assert read(made.parameter_schema).types == [pa.int64()]


def test_parameters_without_known_types_are_described_too() -> None:
    kept = _Kept()
    kept.statements.is_typed = False
    assert len(read(kept.described("SELECT $1").parameter_schema)) == 1


def test_a_write_has_no_columns_of_an_answer() -> None:
    kept = _Kept()
    made = kept.described(WRITE)

    assert made.dataset_schema == b"" and made.parameter_schema
    assert not kept.statements.asked, "a write must not run to be described"


def test_a_wrong_statement_is_not_kept() -> None:
    kept = _Kept()
    with pytest.raises(InvalidQueryError):
        kept.preparing.keep(CONTEXT, caller(), "nonsense")
    assert len(kept.prepared) == 0


def test_a_query_takes_the_one_row_that_is_bound() -> None:
    kept = _Kept()
    one = kept.keep("SELECT $1", pa.table({"1": [7]}))
    two = kept.keep("SELECT $1", pa.table({"1": [7, 8]}))
    none, plain = kept.keep("SELECT $1"), kept.keep("SELECT 1", pa.table({"1": [7]}))

    assert kept.preparing.request(caller(), one).parameters == {"1": 7}
    with pytest.raises(ParametersError, match="2 are bound; only updates take several"):
        kept.preparing.request(caller(), two)
    assert kept.preparing.request(caller(), none).parameters == {}
    assert kept.preparing.request(caller(), plain).parameters == {}


def test_an_update_runs_for_each_row_in_their_order() -> None:
    kept = _Kept()
    handle = kept.keep(WRITE, pa.table({"1": [3, 2, 1]}))

    assert kept.preparing.update(CONTEXT, caller(), handle) == 6
    assert [each.parameters for each in kept.statements.asked] == [{"1": 3}, {"1": 2}, {"1": 1}]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([9], "a value is wrong"),
        ([9, 1], "row 1 of 2: a value is wrong (nothing is written)"),
        ([1, 2, 9, 3], "row 3 of 4: a value is wrong (the 2 before it are written)"),
    ],
)
def test_an_update_that_fails_says_for_which_row(rows: list[int], message: str) -> None:
    kept = _Kept()
    kept.statements.refuses = {9}
    with pytest.raises(InvalidQueryError) as caught:
        kept.preparing.update(CONTEXT, caller(), kept.keep(WRITE, pa.table({"1": rows})))

    assert caught.value.message == message
    assert len(kept.statements.asked) == rows.index(9) + 1


def test_a_count_that_is_unknown_for_a_row_is_unknown() -> None:
    kept = _Kept()
    handle = kept.keep("SELECT $1", pa.table({"1": [1, 2]}))
    assert kept.preparing.update(CONTEXT, caller(), handle) == UNKNOWN_COUNT
    assert kept.preparing.update(CONTEXT, caller(), kept.keep("DELETE FROM t")) == 2


def test_statements_of_another_key_are_not_run() -> None:
    kept = _Kept()
    handle = kept.keep(WRITE, pa.table({"1": [1]}), by="other")
    with pytest.raises(NotFound):
        kept.preparing.request(caller(), handle)
    with pytest.raises(NotFound):
        kept.preparing.update(CONTEXT, caller(), handle)
    body = proto.ActionClosePreparedStatementRequest(prepared_statement_handle=handle.encode())
    kept.preparing.close(caller(), messages.packed(body))
    assert len(kept.prepared) == 1 and not kept.statements.asked


def test_a_handle_that_is_no_text_is_not_found() -> None:
    with pytest.raises(NotFound, match="no such prepared statement"):
        handle_of(proto.ActionClosePreparedStatementRequest(prepared_statement_handle=b"\xff"))


def test_transactions_are_refused() -> None:
    asked = proto.ActionCreatePreparedStatementRequest(query="SELECT 1")
    refuse_transaction(asked)
    asked.transaction_id = b"1"
    with pytest.raises(Unimplemented, match="committed by itself"):
        refuse_transaction(asked)
