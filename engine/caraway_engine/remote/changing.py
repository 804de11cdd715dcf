"""UPDATE and DELETE of tables of databases, which run whole in the database, or not at all.

The engine would change the rows that it read before, and others may have changed them since.
"""

from collections.abc import Sequence

import pyarrow as pa
from datafusion import SessionContext
from datafusion.plan import LogicalPlan
from datafusion.substrait import Producer
from substrait.algebra_pb2 import Expression, Rel
from substrait.plan_pb2 import Plan

from caraway_core.errors import InvalidQueryError
from caraway_core.protocols.remote import Assignment, RemoteChange, TableChange
from caraway_core.statements import DELETE
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_engine.remote import answers, datasets, expressions, unfolding, write_words
from caraway_engine.remote.kinds import NotPushableError
from caraway_engine.remote.queries import RemoteQuery
from caraway_engine.remote.relations import Translator
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import fields, kind, reference, width
from caraway_engine.statements import plan_facts, plan_nodes

_ELSE = (
    "compare columns with constants by =, <, >, IN or IS NULL, and set columns to constants; or "
    "run the statement in the database"
)


def changing(table: RemoteTable, change: TableChange) -> RemoteChange:
    """Return an UPDATE or DELETE that a plug-in runs.

    Raises:
        InvalidQueryError: it cannot.
    """
    changer = answers.changer(table.reader)
    if changer is None:
        raise InvalidQueryError(f"UPDATE and DELETE are not supported: {table.why_unchangeable}")
    return changer.change(table, change)


def planned(
    context: SessionContext, write: str, rows: object, table: RemoteTable
) -> TableChange | None:
    """Return the change that a plan makes, given the plan of its rows; None if there are none.

    Raises:
        InvalidQueryError: the database may change other rows, or set other values.
    """
    frame = context.create_dataframe_from_logical_plan(LogicalPlan(rows))
    optimized = frame.optimized_logical_plan()
    if any(each.kind == "EmptyRelation" for each in plan_nodes.nodes(optimized)):
        return None
    names = plan_facts.of(frame.logical_plan()).scans
    plan = Plan()
    try:
        plan.ParseFromString(Producer.to_substrait_plan(optimized, context).encode())
    except Exception as exc:  # Substrait cannot express it, or it is too deep.
        raise _refused(write, table, "its condition") from exc
    try:
        functions = Functions(plan)
        rel = unfolding.unfolded(plan.relations[0].root.input)
        tables = dict.fromkeys(names, table)
        translator = Translator(functions, tables, datasets.relation, write_words.of_reader)
        return _Planning(table, write, translator).change(rel)
    except NotPushableError as exc:
        raise _refused(write, table, "its condition") from exc


class _Planning:
    """Makes one change."""

    def __init__(self, table: RemoteTable, write: str, translator: Translator) -> None:
        self._table, self._write, self._translator = table, write, translator
        self._writer = write_words.of_reader(table.reader)

    def change(self, rel: Rel) -> TableChange:
        if self._write == DELETE:
            return TableChange(self._condition(self._translator.query(rel)))
        below, outputs = _projected(rel)
        query = self._translator.query(below)
        assigned = []
        for column, output in zip(self._table.columns, outputs, strict=True):
            try:
                assignment = self._assigned(column, output, query)
            except NotPushableError as exc:
                raise _refused(
                    self._write, self._table, f"the new value of column '{column.name}'"
                ) from exc
            if assignment is not None:
                assigned.append(assignment)
        if not assigned:
            raise InvalidQueryError(
                f"UPDATE of {self._table.title}: no column gets another value; nothing is changed"
            )
        return TableChange(self._condition(query), tuple(assigned))

    def _condition(self, query: RemoteQuery) -> str:
        is_plain = query.source == datasets.relation(self._table) and query.keys is None
        if not is_plain or query.limit is not None or query.offset or query.order:
            raise NotPushableError("more than a condition")
        return " AND ".join(query.tests)

    def _assigned(
        self, column: RemoteColumn, output: Expression, query: RemoteQuery
    ) -> Assignment | None:
        """Return how an UPDATE sets a column; None if it leaves the column as it is."""
        if output.WhichOneof("rex_type") == "literal":
            return Assignment(column.name, _value(output.literal, column.type))
        own = self._writer.column(column)
        term = self._translator.term(output, query)
        if term.sql == own.sql:  # It may be cast to the type that it has.
            return None
        if not term.kind or term.kind != own.kind or not term.is_exact or term.is_text:
            raise NotPushableError("a value of another kind")
        names = {self._writer.column(each).sql: each.name for each in self._table.columns}
        read = [query.columns[each.field].sql for each in fields(output)]
        # A column that is computed below may read any of them.
        known = {names[each] for each in read} if names.keys() >= {*read} else {*names.values()}
        return Assignment(column.name, sql=term.sql, reads=frozenset(known))


def _projected(rel: Rel) -> tuple[Rel, Sequence[Expression]]:
    """Return the input of a projection, and the outputs as expressions over its columns."""
    if kind(rel) != "project":
        return rel, list(map(reference, range(width(rel))))
    project = rel.project
    outputs = [*map(reference, range(width(project.input))), *project.expressions]
    if project.common.HasField("emit"):
        outputs = [outputs[place] for place in project.common.emit.output_mapping]
    return project.input, outputs


def _value(literal: Expression.Literal, type_: pa.DataType) -> pa.Scalar:
    """Return a constant as a value of a column.

    Raises:
        NotPushableError: it is of a kind that no column has here.
    """
    try:
        return pa.scalar(_plain(literal), type_)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as exc:
        raise NotPushableError(str(type_)) from exc


def _plain(literal: Expression.Literal) -> object:
    match literal.WhichOneof("literal_type"):
        case "null":
            return None
        case "binary":
            return literal.binary
        case "precision_time":
            time = literal.precision_time
            return expressions.moment(time.value, time.precision, has_zone=False).time()
    return expressions.value_of(literal)


def _refused(write: str, table: RemoteTable, what: str) -> InvalidQueryError:
    return InvalidQueryError(
        f"{write.upper()} of {table.title} is not supported: its database may take {what} "
        f"otherwise than this runtime, so nothing is changed; {_ELSE}"
    )
