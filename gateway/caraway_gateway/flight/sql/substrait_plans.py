"""Substrait plans: written as SQL by an engine, and run as any statement."""

import hashlib
from typing import Any

from pyarrow import flight

from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.sql.preparing import refuse_transaction
from caraway_gateway.flight.sql.running import request_of
from caraway_gateway.flight.statements import Statements
from caraway_scheduler.queries.requests import QueryRequest


def request(
    statements: Statements, context: flight.ServerCallContext, caller: Caller, message: Any
) -> QueryRequest:
    """Ask for the statement that answers the plan in a command.

    Raises:
        QueryError: the plan is wrong, or means what is not known to mean the same in SQL.
    """
    return request_of(caller, sql_of(statements, context, caller, message))


def sql_of(
    statements: Statements, context: flight.ServerCallContext, caller: Caller, message: Any
) -> str:
    """Return the SQL of the plan in a message. Raises the same as `request`."""
    refuse_transaction(message)
    plan: bytes = message.plan.plan
    # The digest takes the place of the text in the list of running statements, and tells an
    # engine process that this plan ended others before.
    named = request_of(caller, f"-- Substrait plan {hashlib.sha256(plan).hexdigest()}")
    return statements.wait(statements.sql_of(named, plan), context)
