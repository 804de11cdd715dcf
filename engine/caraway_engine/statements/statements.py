"""Checks what a statement may do, and describes the effects of running it."""

from dataclasses import dataclass

from caraway_core.errors import InvalidQueryError, QueryError, QueryForbiddenError
from caraway_core.ids import TableName
from caraway_core.sqltext import placeholders
from caraway_core.statements import all_tables_of
from caraway_core.statements.definitions import TableDefinition
from caraway_engine.statements.plan_facts import Operation, PlanFacts

_OF_NUMBERS = frozenset({TableName("generate_series()"), TableName("range()")})
"""Table functions that read no table."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effects of running a plan, in addition to its rows."""

    written: TableName | None
    reads_only_catalog: bool


def effect(facts: PlanFacts, defines: TableDefinition | None = None) -> Effect:
    """Return the effects of a plan, whose rows may become a table.

    Raises:
        InvalidQueryError: they would, and the statement has none.
    """
    if defines is None:
        return Effect(facts.write.table if facts.write else None, facts.reads_only_catalog)
    if facts.operation is not Operation.QUERY:
        raise InvalidQueryError(f"{defines.verb} needs a query; write AS SELECT ...")
    return Effect(defines.name, reads_only_catalog=False)


def check_reads(facts: PlanFacts, readable: frozenset[TableName]) -> None:
    """Refuse a plan that reads more than these tables.

    Planning finds no other dataset. This also covers system tables, and whatever was not found by
    name.

    Raises:
        QueryForbiddenError: it reads another table, or a part of it is hidden.
    """
    if others := sorted(facts.scans.keys() - readable - _OF_NUMBERS):
        raise QueryForbiddenError(
            f"the statement may not read '{others[0]}': it is limited to the datasets that were "
            "named for it"
        )
    if not facts.is_complete:
        raise QueryForbiddenError(
            "the statement is limited to some datasets, and it cannot be checked what it reads; "
            "write it without nested functions over subqueries"
        )


def check(facts: PlanFacts, writable: frozenset[TableName]) -> None:
    """Refuse a plan that writes where it may not.

    Raises:
        InvalidQueryError: it copies to a file, or EXPLAIN ANALYZE would write.
        QueryForbiddenError: the target is read-only.
    """
    if facts.has_copy:
        raise InvalidQueryError("COPY is not supported: read the result of the query instead")
    if facts.operation in (Operation.DDL, Operation.SESSION, Operation.UNKNOWN):
        raise InvalidQueryError("statements of this kind are not supported: send a query")
    write = facts.write
    if write and facts.operation is Operation.ANALYZE:
        raise InvalidQueryError(
            f"EXPLAIN ANALYZE runs the statement, so it would {write.name.lower()} rows; "
            "use EXPLAIN"
        )
    if write is None or write.table in writable:
        return
    catalog, dot, _ = write.table.partition(".")
    is_in_catalog = dot and write.table.count(".") > 1
    if is_in_catalog and all_tables_of(catalog) in writable:
        return
    what = f"catalog '{catalog}'" if is_in_catalog else f"dataset '{write.table}'"
    raise QueryForbiddenError(
        f"{write.name} is refused: {what} is read-only; "
        "give it `access: read_write` in the manifest to write to it."
    )


def check_view(name: TableName, query: str, facts: PlanFacts) -> None:
    """Refuse the query of a view that statements could not read, or not alike.

    Raises:
        InvalidQueryError: it is no query, reads a runtime table, or has a placeholder.
    """
    if facts.operation is not Operation.QUERY:
        raise InvalidQueryError(f"view '{name}' is no query; write one SELECT statement")
    if facts.reads_system:
        raise InvalidQueryError(
            f"view '{name}' reads a runtime table; only statements may, views may not"
        )
    if names := sorted(placeholders.find(query).names):
        raise InvalidQueryError(
            f"view '{name}' has the placeholder '${names[0]}', and a view takes no values; write "
            "the value, or declare a table function with a parameter"
        )


def refined(error: QueryError, *, may_write: bool) -> QueryError:
    """Return the error for a caller who may write, if a statement was refused as a write."""
    if isinstance(error, QueryForbiddenError) and may_write:
        return QueryForbiddenError(
            f"{error.message.split(' ', 1)[0]} is refused: no dataset of this manifest is "
            "`access: read_write`."
        )
    return error
