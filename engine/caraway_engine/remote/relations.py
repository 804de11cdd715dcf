"""Translates Substrait relations to SQL queries, where they read tables of one database."""

from collections.abc import Callable, Mapping

from substrait.algebra_pb2 import Expression, FetchRel, Rel, SortField

from caraway_core.ids import TableName
from caraway_core.loading.dialects import Operation
from caraway_core.tables import RemoteTable, TableSpec
from caraway_engine.remote import expressions, words
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.queries import RemoteQuery
from caraway_engine.remote.words import SqlWriter, WritersOfReaders
from caraway_engine.stages import joins, naming
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import body, join_type, kind, table_name

Relation = Callable[[RemoteTable], str]


class Translator:
    """Translates the parts of one plan that a database can answer."""

    def __init__(
        self,
        functions: Functions,
        tables: Mapping[TableName, TableSpec],
        named: Relation,
        writers: WritersOfReaders = words.of_reader,
    ) -> None:
        self._functions = functions
        self._tables = tables
        self._named = named
        self._writers = writers

    def query(self, rel: Rel) -> RemoteQuery:
        """Translate a relation and everything below it.

        Raises:
            NotPushableError: the database may answer it differently.
        """
        made = _MAKERS.get(kind(rel))
        if made is None:
            raise NotPushableError(kind(rel))
        return _emitted(rel, made(self, rel))

    def term(self, expression: Expression, query: RemoteQuery) -> Term:
        """Translate an expression over the columns of a query. Raises the same as `query`."""
        return expressions.scalar(expression, query.columns, self._functions, query.writer)

    def _read(self, rel: Rel) -> RemoteQuery:
        read = rel.read
        table = self._tables.get(table_name(rel)) if read.HasField("named_table") else None
        if not isinstance(table, RemoteTable):
            raise NotPushableError("another table")
        if read.HasField("filter") or read.HasField("best_effort_filter"):
            raise NotPushableError("a filter in a read")
        known = {each.name: each for each in table.columns}
        names = [read.base_schema.names[place] for place in naming.places(rel)]
        writer = self._writers(table.reader)
        columns = [writer.column(known[name]) for name in names]
        if read.HasField("projection"):
            columns = [columns[item.field] for item in read.projection.select.struct_items]
        return RemoteQuery(table, self._named(table), tuple(columns), writers=self._writers)

    def _filter(self, rel: Rel) -> RemoteQuery:
        below = self.query(rel.filter.input)
        return below.filtered(self.term(rel.filter.condition, below))

    def _project(self, rel: Rel) -> RemoteQuery:
        below = self.query(rel.project.input)
        terms = [self.term(each, below) for each in rel.project.expressions]
        if not all(each.is_exact for each in terms):
            raise NotPushableError("a condition that is not exact")
        return below.selected([*below.columns, *terms])

    def _aggregate(self, rel: Rel) -> RemoteQuery:
        aggregate = rel.aggregate
        if len(aggregate.groupings) > 1:
            raise NotPushableError("grouping sets")
        below = self.query(aggregate.input)
        keys = [self.term(each, below) for each in aggregate.grouping_expressions]
        measures = []
        for each in aggregate.measures:
            condition = self.term(each.filter, below) if each.HasField("filter") else None
            measures.append(
                expressions.measure(
                    each.measure, condition, below.columns, self._functions, below.writer
                )
            )
        return below.grouped(keys, measures)

    def _join(self, rel: Rel) -> RemoteQuery:
        operation, verb = _VERBS.get(join_type(rel), (None, ""))
        if operation is None or rel.join.HasField("post_join_filter"):
            raise NotPushableError(f"a join of type {join_type(rel)}")
        left, right = self.query(rel.join.left), self.query(rel.join.right)
        left.writer.need(operation)
        if not joins.keys(rel, len(left.columns), self._functions):
            raise NotPushableError("a join without equal keys")
        return left.joined(
            right,
            verb,
            lambda columns: expressions.scalar(
                rel.join.expression, columns, self._functions, left.writer
            ),
        )

    def _fetch(self, rel: Rel) -> RemoteQuery:
        fetch = rel.fetch
        limit, offset = _count(fetch, "count_expr"), _count(fetch, "offset_expr")
        below, order = fetch.input, list[str]()
        if kind(below) == "sort":
            inner = self.query(below.sort.input)
            order = [
                _key(each, inner.writer, self.term(each.expr, inner)) for each in below.sort.sorts
            ]
            inner = _emitted(below, inner)
        else:
            inner = self.query(below)
        return inner.limited(order, limit, offset or 0)


def _emitted(rel: Rel, query: RemoteQuery) -> RemoteQuery:
    common = body(rel).common
    if not common.HasField("emit"):
        return query
    return query.selected([query.columns[place] for place in common.emit.output_mapping])


def _key(field: SortField, writer: SqlWriter, term: Term) -> str:
    name = SortField.SortDirection.Name(field.direction)
    found = _DIRECTIONS.get(name)
    if found is None:
        raise NotPushableError(name)
    return writer.ordered(term, descending=found[0], nulls_first=found[1])


def _count(fetch: FetchRel, name: str) -> int | None:
    if not fetch.HasField(name):
        return None
    value = expressions.value_of(getattr(fetch, name).literal)
    if not isinstance(value, int) or value < 0:
        raise NotPushableError("a limit")
    return value


_DIRECTIONS = {
    "SORT_DIRECTION_ASC_NULLS_FIRST": (False, True),
    "SORT_DIRECTION_ASC_NULLS_LAST": (False, False),
    "SORT_DIRECTION_DESC_NULLS_FIRST": (True, True),
    "SORT_DIRECTION_DESC_NULLS_LAST": (True, False),
}
_VERBS: Mapping[str, tuple[Operation, str]] = {
    "INNER": ("join", "JOIN"),
    "LEFT": ("outer join", "LEFT JOIN"),
    "RIGHT": ("outer join", "RIGHT JOIN"),
}
_MAKERS: Mapping[str, Callable[[Translator, Rel], RemoteQuery]] = {
    "read": Translator._read,
    "filter": Translator._filter,
    "project": Translator._project,
    "aggregate": Translator._aggregate,
    "fetch": Translator._fetch,
    "join": Translator._join,
}
