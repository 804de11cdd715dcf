"""Translates what a MERGE reads of its table: the database computes it for each pair of rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from datafusion import SessionContext
from datafusion.expr import Expr
from datafusion.substrait import Producer
from substrait.algebra_pb2 import Expression, Rel
from substrait.plan_pb2 import Plan

from caraway_core.protocols.remote import ROW_ALIAS, TABLE_ALIAS
from caraway_core.sqltext.merge_statements import MergeStatement
from caraway_core.sqltext.token_reader import TokenReader, name_of
from caraway_core.tables import RemoteTable
from caraway_engine.remote import expressions, write_words
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import fields, kind
from caraway_engine.statements import decorrelation, plan_nodes

_TABLE, _ROWS = "the table", "the rows"


@dataclass(frozen=True, slots=True)
class MergeText:
    """A part of a MERGE: a condition, or the new value of a column.

    One that `is_alone` is for rows of the table without a row of the source.
    """

    text: str
    column: str | None = None
    is_alone: bool = False


class UntranslatedError(Exception):
    """The database may compute a part of a MERGE otherwise than the engine."""

    def __init__(self, part: MergeText) -> None:
        """Take the part."""
        super().__init__(part.text)
        self.part = part


class MergeTerms:
    """Texts of a MERGE as SQL of the database, if they read the table."""

    def __init__(self, table: RemoteTable, statement: MergeStatement, source: pa.Schema) -> None:
        """Take the table, and the columns of the source."""
        self._table, self._statement, self._source = table, statement, source
        self._writer = write_words.of_reader(table.reader)
        self._sql: dict[MergeText, str] = {}
        self.operands: dict[str, str] = {}
        """The column of the rows for each column of the source that they read."""
        self.types = {each.name: each.type for each in source}

    def __contains__(self, part: MergeText) -> bool:
        return part in self._sql

    def __getitem__(self, part: MergeText) -> str:
        return self._sql[part]

    def translate(self, parts: Sequence[MergeText], plan: Callable[[str], Any]) -> None:
        """Translate those of the parts that read the table. `plan` plans a query.

        Raises:
            UntranslatedError: the database may compute one otherwise.
        """
        statement = self._statement
        alone = [each for each in parts if each.is_alone]
        pairs = [each for each in parts if not each.is_alone]
        table, source = _named(statement.table), _named(statement.source)
        for some, rows in ((alone, table), (pairs, f"{table}, {source}")):
            if some:
                outputs = (f'({each.text}) AS "{place}"' for place, each in enumerate(some))
                frame = plan(f"SELECT {', '.join(outputs)} FROM {rows}")
                node = plan_nodes.typed(frame.logical_plan()._raw_plan)
                values = map(_without_alias, plan_nodes.expressions(node))
                self._translate(dict(zip(some, values, strict=True)))

    def _translate(self, found: Mapping[MergeText, object]) -> None:
        names = {each: _relations(value) for each, value in found.items()}
        target = self._statement.target
        others = {name for each in names.values() for name in each} - {target}
        alias = others.pop() if len(others) == 1 else _ROWS
        columns = self._columns()
        for part, value in found.items():
            if not part.is_alone and target not in names[part]:
                continue
            try:
                self._sql[part] = self._translated(part, value, alias, columns)
            except Exception as exc:  # Substrait cannot express it, or it is too deep.
                raise UntranslatedError(part) from exc

    def _columns(self) -> Sequence[Term]:
        """Return the columns of the table, and after them those of the source."""
        quoted, writer = self._writer.quoted, self._writer
        terms = [writer.column(each) for each in self._table.columns]
        columns = [replace(each, sql=f"{TABLE_ALIAS}.{each.sql}") for each in terms]
        for place, field in enumerate(self._source):
            name = f"operand {place}"
            columns.append(writer.of_type(f"{ROW_ALIAS}.{quoted(name)}", field.type))
        return columns

    def _translated(
        self, part: MergeText, value: object, alias: str, columns: Sequence[Term]
    ) -> str:
        own = self._table.schema.field(part.column).type if part.column else None
        expression, functions = _planned(
            Expr(value) if own is None else Expr(value).cast(own),
            {(_TABLE, self._statement.target): self._table.schema, (_ROWS, alias): self._source},
        )
        read = {int(each.field) for each in fields(expression)}
        if part.column:
            column = next(each for each in self._table.columns if each.name == part.column)
            sql = self._value(expression, self._writer.column(column), columns, functions)
        else:
            term = expressions.scalar(expression, columns, functions, self._writer)
            if term.kind != "bool" or not term.is_exact:
                raise NotPushableError("a condition")
            sql = term.sql
        for place in read:
            number = place - len(self._table.columns)
            if number >= 0:
                self.operands[self._source.names[number]] = f"operand {number}"
        return sql

    def _value(
        self, expression: Expression, own: Term, columns: Sequence[Term], functions: Functions
    ) -> str:
        if expression.literal.WhichOneof("literal_type") == "null":
            return f"CASE WHEN 1 = 0 THEN {TABLE_ALIAS}.{own.sql} END"  # It has the type.
        term = expressions.scalar(expression, columns, functions, self._writer)
        if not term.kind or term.kind != own.kind or not term.is_exact or term.is_text:
            raise NotPushableError("a value of another kind")
        return term.sql


def _planned(
    value: Expr, tables: Mapping[tuple[str, str], pa.Schema]
) -> tuple[Expression, Functions]:
    """Return an expression over the columns of tables, simplified, with the plan's functions."""
    context = SessionContext()
    for (name, _), schema in tables.items():
        context.register_record_batches(name, [[pa.RecordBatch.from_pylist([], schema=schema)]])
    named = (f"{_quoted(name)} AS {_quoted(alias)}" for name, alias in tables)
    frame = context.sql(f"SELECT * FROM {' CROSS JOIN '.join(named)}").select(value.alias("value"))
    logical = frame.logical_plan()
    simplifying = decorrelation.decorrelating(simplifies=True)
    optimized = simplifying.create_dataframe_from_logical_plan(logical).optimized_logical_plan()
    plan = Plan()
    plan.ParseFromString(Producer.to_substrait_plan(optimized, context).encode())
    rel: Rel = plan.relations[0].root.input
    if kind(rel) != "project" or kind(rel.project.input) != "project":
        raise NotPushableError("another plan")
    (expression,) = rel.project.expressions
    return expression, Functions(plan)


def _named(text: str) -> str:
    """Return a table of FROM with a name of one part, by which the engine calls its columns."""
    tokens = TokenReader.of(text).left()
    is_name = all(each.kind in ("word", "name") or each.text == "." for each in tokens)
    has_alias = len(tokens) > 1 and tokens[-2].text != "."
    return text if not is_name or has_alias else f"{text} AS {_quoted(name_of(tokens[-1]))}"


def _without_alias(expression: Any) -> object:
    while expression.variant_name() == "Alias":
        (expression,) = expression.rex_call_operands()
    return expression


def _relations(expression: object) -> frozenset[str]:
    """Return the names of the relations whose columns an expression reads."""
    parts = plan_nodes.inside(expression)
    columns = (each.expression.to_variant() for each in parts if each.kind == "Column")
    return frozenset(filter(None, (each.relation() for each in columns)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
