"""The types of a statement's parameters, as far as the engine infers them."""

import pyarrow as pa
from datafusion import Expr, SQLOptions

from caraway_core.sqltext import placeholders
from caraway_core.statements import Statement
from caraway_engine.errors import engine_messages
from caraway_engine.known_faults import distinct_from
from caraway_engine.rows import plain
from caraway_engine.sessions.registered import Registered
from caraway_engine.statements import bounds, plan_facts, plan_nodes, viewing
from caraway_engine.statements.plan_nodes import HiddenError

_READ_WRITE = SQLOptions().with_allow_ddl(False).with_allow_statements(False)


def types(registered: Registered, statement: Statement) -> dict[str, pa.DataType]:
    """Plan a statement without values; return the types by the names of the parameters.

    The type is null where the engine infers none, such as for that of a LIMIT, and of all where it
    takes only literals in a place that has one.

    Raises:
        QueryError: it cannot be planned without values.
    """
    found = placeholders.bare(statement.sql)
    bounds.check(found.sql, {}, registered.sizes)
    known: dict[str, pa.DataType] = dict.fromkeys(found.names, pa.null())
    context = registered.contexts.main
    try:
        with viewing.limits_of(statement):
            sql = distinct_from.regrouped(found.sql) or found.sql
            logical = context.sql(sql, options=_READ_WRITE).logical_plan()
        one = context.sql("SELECT 1")
        for name, expression in _placeholders(logical):
            # The engine shows the type of an expression by the column that it makes.
            inferred = plain.plain_type(one.select(Expr(expression)).schema().field(0).type)
            before = known.get(name)
            if before is not None and pa.types.is_null(before):
                known[name] = inferred
    except HiddenError:
        pass
    except BaseException as exc:
        if found.names and engine_messages.find(engine_messages.ONLY_LITERALS, exc):
            return known  # It can be planned with its values; see `typed_values`.
        with viewing.limits_of(statement):
            raise registered.translate(exc, planning=True) from exc
    return known


def _placeholders(plan: object) -> list[tuple[str, object]]:
    return [
        (part.expression.to_variant().id().removeprefix("$"), part.expression)
        for node in plan_facts.nodes(plan)
        for expression in plan_nodes.expressions(node)
        for part in plan_nodes.inside(expression)
        if part.kind == "Placeholder"
    ]
