"""Checks what a statement may do, and describes the effects of running it."""

from dataclasses import dataclass

from caraway_core.errors import InvalidQueryError, QueryForbiddenError
from caraway_core.ids import TableName
from caraway_engine.statements.plan_facts import Operation, PlanFacts


@dataclass(frozen=True, slots=True)
class Effect:
    """The effects of running a plan, in addition to its rows."""

    written: TableName | None
    reads_only_catalog: bool


def effect(facts: PlanFacts) -> Effect:
    """Return the effects of a plan."""
    return Effect(facts.write.table if facts.write else None, facts.reads_only_catalog)


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
    if write and write.table not in writable:
        raise QueryForbiddenError(
            f"{write.name} is refused: dataset '{write.table}' is read-only; "
            "give it `access: read_write` in the manifest to write to it."
        )
