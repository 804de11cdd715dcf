"""Statements of Flight SQL: their requests, columns and counts."""

from dataclasses import replace

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import writing
from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.sql.binding import Values
from caraway_gateway.flight.statements import COUNTED, Statements
from caraway_scheduler.queries.requests import QueryRequest

UNKNOWN_COUNT = -1
_NO_VALUES: Values = {}


async def schema(statements: Statements, request: QueryRequest) -> pa.Schema:
    """Return the columns of the answer to a statement, and read as little as possible."""
    if is_write(request):
        return COUNTED
    with_no_rows = f"SELECT * FROM (\n{request.sql}\n) AS statement LIMIT 0"
    try:
        return await statements.begun_schema(replace(request, sql=with_no_rows))
    except InvalidQueryError:
        # No subquery can be made of SHOW, of EXPLAIN, or of two columns with one name.
        return await statements.begun_schema(request)


async def count(statements: Statements, request: QueryRequest) -> int:
    """Run a statement to its end, and return how many rows it has changed."""
    rows = await statements.collected(request)
    if is_write(request) and rows.num_rows == 1 and rows.schema.names == COUNTED.names:
        return int(rows.column(0)[0].as_py())
    return UNKNOWN_COUNT


def request_of(caller: Caller, sql: str, values: Values = _NO_VALUES) -> QueryRequest:
    """Ask for a statement in the name of a caller."""
    return replace(caller.request(sql), protocol="flightsql", parameters=dict(values))


def is_write(request: QueryRequest) -> bool:
    """Return whether a statement changes a table."""
    return writing.begins_with_write(request.sql)
