"""Reads the calls of table functions in texts, and what stands for each.

See `caraway_engine.table_functions` for the idea.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.sqltext import placeholders, table_calls
from caraway_core.sqltext.searching import FUNCTIONS
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.statements.searches import FUSED_SCORE, RERANK_SCORE, SCORE
from caraway_engine.execution.contexts import Contexts
from caraway_engine.statements import bounds, plan_facts
from caraway_engine.table_functions import arguments, filters, stand_ins
from caraway_engine.table_functions.arguments import (
    AskedCall,
    AskedFusion,
    AskedReranking,
    AskedSearch,
)

_DEEPEST = 4
_Text = TypeVar("_Text", str, str | None)


@dataclass(frozen=True, slots=True)
class StandIn:
    """A call, the table that stands for it, and the columns of that table."""

    name: TableName
    asked: AskedCall
    schema: pa.Schema
    score: str | None
    reads: frozenset[TableName] = frozenset()
    """The tables that its rows depend on."""

    @property
    def is_empty(self) -> bool:
        """True if the query is empty."""
        if isinstance(self.asked, AskedReranking):
            return self.asked.query is None
        return any(each.text is None for each in searches_in(self.asked))

    @property
    def searched(self) -> TableName | None:
        """The table that is searched; None where the rows of a statement are ordered."""
        searches = searches_in(self.asked)
        return searches[0].table if searches else None


@dataclass(frozen=True, slots=True)
class CallingText:
    """A text with calls: as it was written, and with names of tables in place of the calls."""

    sql: str
    stand_ins: tuple[StandIn, ...]


class SessionTables(Protocol):
    """The registered tables and views of a session, as its calls need them; see `Registered`."""

    snapshot: CatalogSnapshot
    contexts: Contexts
    sizes: bounds.ViewSizes
    stand_ins: dict[TableName, StandIn]
    """What stands for the calls in views, by name."""
    searching: dict[TableName, frozenset[TableName]]
    """The names of those that each view reads, directly or through other views."""

    def queried(self, statement: Statement) -> Any:
        """Return the query of a statement, planned; see `Registered.queried`."""

    def translate(self, exc: BaseException, *, planning: bool = False) -> QueryError:
        """Return the error for the user."""
        ...


class CallReader:
    """Reads calls in texts over the tables of one session."""

    def __init__(self, registered: SessionTables) -> None:
        self._registered = registered

    def may_search(self, sql: str) -> bool:
        """Return whether a text may call for a search, also through views."""
        return table_calls.may_have(sql, FUNCTIONS) or any(self.of_views(sql))

    def read(
        self, statement: Statement, view: TableName | None = None, depth: int = 1
    ) -> CallingText:
        """Read the calls in a text, and put names of tables in their places.

        Raises:
            QueryError: a call is wrong.
        """
        found = placeholders.find(statement.sql)
        if not table_calls.may_have(found.sql, FUNCTIONS):
            return CallingText(found.sql, ())
        bounds.check(found.sql, statement.parameters, self._registered.sizes)
        calls = table_calls.read(found.sql, FUNCTIONS)
        if calls:
            found.check(statement.parameters)
        ins = tuple(
            self._stand_in(stand_ins.named(number, call, view), call, statement, depth)
            for number, call in enumerate(calls, start=1)
        )
        names = [filters.quoted(each.name) for each in ins]
        sql = table_calls.replaced(found.sql, calls, lambda number, _call: names[number - 1])
        return CallingText(sql, ins)

    def _stand_in(
        self, name: TableName, call: table_calls.TableCall, statement: Statement, depth: int
    ) -> StandIn:
        asked = arguments.bound(call, statement.parameters)
        if isinstance(asked, AskedReranking):
            return self._reranking(name, asked, statement, depth)
        searches = searches_in(asked)
        table = searches[0].table
        schema = self._schema(table, call)
        for each in searches:
            _check_column(each.call, each.column, schema)
        score: str | None = SCORE
        if isinstance(asked, AskedFusion):
            score = FUSED_SCORE
            _check_column(call, asked.key, schema)
            _check_column(call, asked.decay.column if asked.decay else None, schema)
        elif not asked.has_score:
            score = None
        return StandIn(name, asked, _with(schema, score, asked), score, frozenset({table}))

    def _schema(self, table: TableName, call: table_calls.TableCall) -> pa.Schema:
        """Return the columns of a table that may be searched.

        Raises:
            QueryError: there is no such table, or it belongs to the runtime.
        """
        context = self._registered.contexts.main
        try:
            frame = context.sql(f"SELECT * FROM {filters.quoted(table)}")
        except BaseException as exc:
            raise self._registered.translate(exc, planning=True) from exc
        if table not in self._registered.snapshot.tables:
            raise InvalidQueryError(f"{call.where}: table '{table}' cannot be searched")
        return _nullable(frame)

    def _reranking(
        self, name: TableName, asked: AskedReranking, statement: Statement, depth: int
    ) -> StandIn:
        """Find out the columns of the rows that are reranked, the column and the query."""
        where = f"{asked.call.where}: {asked.call.function}"
        if depth > _DEEPEST:
            raise InvalidQueryError(f"{where}: calls are nested more than {_DEEPEST} deep")
        query = inner(statement, asked.sql)
        try:
            text = self.read(query, depth=depth + 1)
            views = tuple(self.of_views(query.sql))
            every = {each.name: stand_ins.empty(each.schema) for each in (*text.stand_ins, *views)}
            with stand_ins.shown(every):
                frame = self._registered.queried(over(query, text))
        except InvalidQueryError as exc:
            raise InvalidQueryError(
                f"{where}: its input is planned by itself, without the statement around it: "
                f"{exc.message}"
            ) from exc
        schema = _nullable(frame)
        scans = plan_facts.of(frame.logical_plan()).scans
        reads = {each for each in scans if not stand_ins.is_stand_in(each)}
        reads.update(*(each.reads for each in (*text.stand_ins, *views)))
        asked = _completed(asked, schema, text.stand_ins)
        rows = _with(schema, RERANK_SCORE, asked)
        return StandIn(name, asked, rows, RERANK_SCORE, frozenset(reads))

    def of_views(self, sql: str) -> Iterator[StandIn]:
        """Yield what stands for the calls in the views that a text names."""
        searching = self._registered.searching
        if not searching:
            return
        text = sql.lower()
        names: set[TableName] = set()
        for view, made in searching.items():
            if view.rpartition(".")[2].lower().replace('"', '""') in text:
                names |= made
        yield from (self._registered.stand_ins[name] for name in sorted(names))


def over(statement: Statement, text: CallingText) -> Statement:
    """Return the statement with a rewritten text and the parameters that are left."""
    names = placeholders.find(text.sql).names
    values = {name: each for name, each in statement.parameters.items() if name in names}
    return replace(statement, sql=text.sql, parameters=values)


def inner(statement: Statement, sql: str) -> Statement:
    """Return the statement with another text and the parameters that this text uses."""
    names = placeholders.find(sql).names
    values = {name: each for name, each in statement.parameters.items() if name in names}
    return replace(statement, sql=sql, parameters=values)


def _nullable(frame: Any) -> pa.Schema:
    """Return the columns of a dataframe; those that are not fetched will be NULL."""
    return pa.schema([field.with_nullable(True) for field in pa.schema(frame.schema())])


def _with(schema: pa.Schema, score: str | None, asked: AskedCall) -> pa.Schema:
    """Add the score, if it is wanted, to the columns of a table.

    Raises:
        InvalidQueryError: the table has a column of that name.
    """
    if score is None:
        return schema
    if score in schema.names:
        instead = (
            "write include_score => false"
            if isinstance(asked, AskedSearch)
            else "rename it in a view, and search the view"
        )
        raise InvalidQueryError(
            f"{asked.call.where}: {asked.call.function}: the rows have a column '{score}' already; "
            f"{instead}"
        )
    return schema.append(pa.field(score, pa.float64()))


def _check_column(call: table_calls.TableCall, column: str | None, schema: pa.Schema) -> None:
    if column is not None and column not in schema.names:
        raise InvalidQueryError(
            f"{call.where}: {call.function}: {registry.unknown('column', column, schema.names)}"
        )


def _completed(
    asked: AskedReranking, schema: pa.Schema, inside: tuple[StandIn, ...]
) -> AskedReranking:
    """Fill in the column and the query, where there is only one that can be meant."""
    call = asked.call
    _check_column(call, asked.column, schema)
    texts = [field.name for field in schema if _is_text(field.type)]
    column = asked.column or _only(call, "col", texts, "the name of the column with the text")
    if not _is_text(schema.field(column).type):
        raise InvalidQueryError(f"{call.where}: {call.function}: column '{column}' has no text")
    if asked.has_query:
        return replace(asked, column=column)
    searched = {each.text for stand_in in inside for each in searches_in(stand_in.asked)}
    query = _only(call, "query", list(searched), "the text that the rows should answer")
    return replace(asked, column=column, query=query)


def searches_in(asked: AskedCall) -> tuple[AskedSearch, ...]:
    """Return the searches of tables in a call."""
    if isinstance(asked, AskedFusion):
        return asked.searches
    return (asked,) if isinstance(asked, AskedSearch) else ()


def _only(call: table_calls.TableCall, name: str, found: list[_Text], what: str) -> _Text:
    if len(found) != 1:
        raise InvalidQueryError(f"{call.where}: {call.function}: give `{name}`, {what}")
    return found[0]


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
