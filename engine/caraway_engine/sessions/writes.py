"""Plans writes: an INSERT into another table, or the changes that a write would make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from datafusion import SessionContext, col
from datafusion.catalog import Table
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from caraway_core.changes import EXISTS, OLD_KEY
from caraway_core.errors import InvalidQueryError, MovedOnError
from caraway_core.ids import TableName
from caraway_core.statements import DELETE, INSERT, MERGES, UPDATE, Statement, TableWrite
from caraway_core.tables import MemoryTable, RemoteTable, TableSpec
from caraway_engine.execution import contexts
from caraway_engine.remote import merging, replacing
from caraway_engine.scans import tables
from caraway_engine.stages.inputs import INPUT_SCHEMA
from caraway_engine.statements import plan_facts, plan_nodes, subplans
from caraway_engine.statements.plan_facts import Operation, PlanFacts

_TAKEN = frozenset({"DmlStatement", "Projection", "Filter", "TableScan", "SubqueryAlias"})
_INSTEAD = {
    **dict.fromkeys(MERGES, "write UPDATE or DELETE with a subquery, and INSERT ... SELECT"),
    "Truncate": "write DELETE without WHERE",
}


@dataclass(frozen=True, slots=True)
class Insertion:
    """An INSERT whose rows go to another table than the one that the statement names."""

    target: TableName
    plan: Any

    def rows(self, context: SessionContext) -> Table:
        """Return a view of the rows to insert."""
        return named(context, self.plan).into_view()

    def sql(self, name: str) -> str:
        """Return the INSERT statement. Its rows are registered under `name` among the inputs."""
        return _inserting(contexts.quoted(self.target), _names(self.plan), name)


def into_input(target: str, columns: Sequence[str], name: str) -> str:
    """Return an INSERT into one of the inputs, of the rows that are registered under `name`."""
    return _inserting(f"{INPUT_SCHEMA}.{_quoted(target)}", columns, name)


def _inserting(target: str, columns: Sequence[str], name: str) -> str:
    listed = ", ".join(map(_quoted, columns))
    return f"INSERT INTO {target} ({listed}) SELECT * FROM {INPUT_SCHEMA}.{_quoted(name)}"


def named(context: SessionContext, rows: Any) -> Any:
    """Return the rows of an INSERT, with the columns that the statement names.

    The engine fills the others with NULL. A database may have defaults for them.
    """
    return _frame(context, rows).select(*map(_column, _names(rows)))


def _names(rows: Any) -> Sequence[str]:
    given = zip(subplans.schema(rows).names, rows.to_variant().projections(), strict=True)
    return [name for name, each in given if not _is_filled(each)]


def _is_filled(expression: Any) -> bool:
    while expression.variant_name() in ("Alias", "Cast"):
        (expression,) = expression.rex_call_operands()
    return bool(expression.variant_name() == "Literal")


def insertion(plan: Any, targets: Mapping[TableName, TableName]) -> Insertion | None:
    """Return the INSERT to run instead of a plan, if `targets` has its table.

    Raises:
        InvalidQueryError: the write is not supported.
    """
    write = plan_facts.of(plan).write
    if write is None or write.table not in targets or write.name in (UPDATE, DELETE):
        return None
    check_name(write)
    (rows,) = plan._raw_plan.inputs()
    return Insertion(targets[write.table], rows)


@dataclass(frozen=True, slots=True)
class Other:
    """A table that replaces another while a statement is planned."""

    table: Table


def is_changed_apart(spec: TableSpec) -> bool:
    """Return whether a plug-in changes rows of another table than the one that is read."""
    return spec.written not in (None, spec) and not replacing.is_replaced(spec)


def without_rows(table: RemoteTable) -> Table:
    """Return a table with the columns of one that a plug-in writes to.

    A plan over files has facts of those files, and the plug-in may find others.
    """
    schema = pa.schema([(each.name, each.type) for each in table.columns])
    return tables.build_table(MemoryTable(schema, schema.empty_table()))


def retargeted(facts: PlanFacts, targets: Mapping[TableName, TableName]) -> PlanFacts:
    """Replace the written dataset in the facts by the table that is changed instead."""
    write = facts.write
    if write is None or write.table not in targets:
        return facts
    scans = {targets.get(name, name): count for name, count in facts.scans.items()}
    return replace(facts, write=TableWrite(targets[write.table], write.name), scans=scans)


def check_name(write: TableWrite) -> None:
    """Refuse writes that no table supports.

    Raises:
        InvalidQueryError: it is such a write.
    """
    if write.name not in (INSERT, UPDATE, DELETE):
        instead = _INSTEAD.get(write.name, "write INSERT INTO, UPDATE or DELETE")
        raise InvalidQueryError(
            f"{write.name} of dataset '{write.table}' is not supported; {instead}"
        )


def check(
    facts: PlanFacts,
    specs: Mapping[TableName, TableSpec],
    targets: Mapping[TableName, TableName],
) -> None:
    """Refuse changes of rows that the engine does not support or gets wrong.

    Raises:
        InvalidQueryError: the rows are in files, or the statement has a subquery.
    """
    write = facts.write
    if write is None or facts.operation is not Operation.WRITE or write.table not in specs:
        return
    spec = specs.get(targets.get(write.table, write.table))
    if write.name in MERGES and write.table not in targets and merging.is_merged(spec):
        return
    is_change = write.name in (UPDATE, DELETE) or (write.name in MERGES and not targets)
    if is_change and replacing.is_replaced(spec):
        return
    if spec is not None and spec.version is not None:
        return
    if write.name == INSERT:
        _check_insert(write, spec)
        return
    check_name(write)
    if spec is not None and spec.why_unchangeable:
        raise InvalidQueryError(
            f"{write.name} of dataset '{write.table}' is not supported: {spec.why_unchangeable}"
        )
    # The engine would apply the conditions of the subquery to the table, and databases do not run
    # subqueries of the engine.
    if facts.has_subquery:
        raise InvalidQueryError(
            f"{write.name} of dataset '{write.table}' cannot have a subquery; run the subquery "
            "first and use its values"
        )


def _check_insert(write: TableWrite, spec: TableSpec | None) -> None:
    if spec is not None and spec.why_no_insert:
        raise InvalidQueryError(
            f"INSERT into dataset '{write.table}' is not supported: {spec.why_no_insert}"
        )


def changes_nothing(dataframe: Any) -> bool:
    """Return whether an UPDATE or DELETE cannot match any row.

    The engine takes the conditions from the optimized plan. If they can never hold, the optimizer
    removes them, and the engine would change every row.

    Raises:
        InvalidQueryError: the engine cannot take the conditions from a plan of this form.
    """
    kinds = {node.kind for node in plan_nodes.nodes(dataframe.optimized_logical_plan())}
    if kinds <= _TAKEN:
        return False
    if kinds <= _TAKEN | {"EmptyRelation"}:
        return True
    raise InvalidQueryError(
        "this UPDATE or DELETE is not supported over rows in memory; select the rows in WHERE by "
        "comparing columns with constants"
    )


def nothing(context: SessionContext) -> Any:
    """Return a plan for the result of a write that changes no rows."""
    return context.sql("SELECT arrow_cast(0, 'UInt64') AS count")


def changes(
    dataframe: Any,
    context: SessionContext,
    statement: Statement,
    specs: Mapping[TableName, TableSpec],
) -> object:
    """Plan the rows that a write to an accelerated dataset would change, with their keys.

    For DELETE, the rows are keys. For INSERT and UPDATE, they are the new rows. For UPDATE, the old
    keys follow the columns. Where keys are new, the last column says whether the key exists.

    Raises:
        InvalidQueryError: the dataset has no key, or the write is not supported.
        MovedOnError: the dataset is no longer at the version that the statement names.
    """
    write = plan_facts.of(dataframe.logical_plan()).write
    assert write is not None
    check_name(write)
    version = specs[write.table].version if write.table in specs else None
    if version is None or version.key not in statement.logs:
        raise MovedOnError(f"dataset '{write.table}' was reloaded; run the statement again")
    primary = version.keys.primary if version.keys else ()
    if not primary and write.name != INSERT:
        raise InvalidQueryError(
            f"{write.name} of dataset '{write.table}' needs a key that identifies its rows; "
            "declare `primary_key` in its acceleration"
        )
    (raw,) = dataframe.logical_plan()._raw_plan.inputs()
    made = _changed(write.name, raw, primary, context)
    is_new = write.name == INSERT or (write.name == UPDATE and _sets(raw, primary))
    return _looked_up(made, write.table, primary, context) if primary and is_new else made


def _changed(name: str, raw: Any, primary: Sequence[str], context: SessionContext) -> object:
    frame = _frame(context, raw)
    if name == DELETE:
        return frame.select(*map(_column, primary))
    if name == INSERT:
        return frame
    old = (_column(key).alias(f"{OLD_KEY}{number}") for number, key in enumerate(primary))
    (below,) = raw.inputs()
    new = map(Expr, raw.to_variant().projections())
    return _frame(context, below).select(*new, *old)


def _sets(raw: Any, primary: Sequence[str]) -> bool:
    """Return whether an UPDATE sets a column of the primary key."""
    columns = zip(subplans.schema(raw).names, raw.to_variant().projections(), strict=True)
    return any(name in primary and not _is_column(each, name) for name, each in columns)


def _is_column(expression: Any, name: str) -> bool:
    while expression.variant_name() == "Alias":
        (expression,) = expression.rex_call_operands()
    kind = expression.variant_name()
    return bool(kind == "Column" and expression.to_variant().name() == name)


def _looked_up(made: Any, table: TableName, primary: Sequence[str], context: Any) -> object:
    """Add a column that says whether a row with the same key exists."""
    there = [f"{EXISTS}{number}" for number in range(len(primary))]
    keys = ", ".join(f"{_quoted(key)} AS {name}" for key, name in zip(primary, there, strict=True))
    names = [field.name for field in made.schema()]
    sql = context.sql(f"SELECT {keys} FROM {contexts.quoted(table)}")
    joined = made.join(sql, left_on=[*map(str, primary)], right_on=there, how="left")
    exists = _column(there[0]).is_not_null().alias(EXISTS)
    return joined.select(*map(_column, names), exists)


def _frame(context: SessionContext, raw: object) -> Any:
    return context.create_dataframe_from_logical_plan(LogicalPlan(raw))


def _column(name: str) -> Expr:
    return col(_quoted(name))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
