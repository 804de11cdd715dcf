"""Plans of clients over the tables of one session, as statements."""

from collections.abc import Sequence

import pyarrow as pa

from caraway_core.statements import Statement
from caraway_engine.client_plans import plans, words
from caraway_engine.sessions.registered import READ_ONLY, Registered
from caraway_engine.statements import viewing


def sql_of(registered: Registered, statement: Statement, plan: bytes) -> str:
    """Write a Substrait plan as SQL over the tables that a statement may read.

    Raises:
        QueryError: a part of it is wrong or not supported, or a table is not there.
    """
    context = registered.contexts.main
    known: dict[tuple[str, ...], pa.Schema] = {}

    def schema_of(names: Sequence[str]) -> pa.Schema:
        key = tuple(names)
        if key not in known:
            table = ".".join(map(words.name, names))
            known[key] = context.sql(f"SELECT * FROM {table}", options=READ_ONLY).schema()
        return known[key]

    with viewing.limits_of(statement):
        try:
            return plans.written(plan, schema_of)
        except BaseException as exc:
            raise registered.translate(exc, planning=True) from exc
