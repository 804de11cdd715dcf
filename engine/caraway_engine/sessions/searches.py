"""Plans the searches of statements, and shows their rows to the statements.

See `caraway_engine.table_functions` for the idea.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.sqltext import explained, predicates
from caraway_core.sqltext.searching import TableSearch
from caraway_core.statements import Statement
from caraway_core.statements.searches import (
    FUSED_SCORE,
    FusedSearches,
    RerankedRows,
    StatementSearch,
    WeightedSearch,
)
from caraway_engine.known_faults import PlannedStatement
from caraway_engine.sessions import calls, plans
from caraway_engine.sessions.calls import CallReader, SessionTables, StandIn
from caraway_engine.statements import plan_facts, viewing
from caraway_engine.statements.plan_facts import PlanFacts
from caraway_engine.table_functions import filters, stand_ins, wanted
from caraway_engine.table_functions.arguments import (
    AskedFusion,
    AskedSearch,
)
from caraway_engine.table_functions.filters import FilteredTable

_MOST_KEPT = 512
Framed = Callable[[Statement], PlannedStatement]
"""Plans a statement, rewritten where the engine needs it."""


class StatementSearches:
    """Plans the searches of statements over the tables of one session."""

    def __init__(self, registered: SessionTables) -> None:
        self._registered = registered
        self.calls = CallReader(registered)
        self._kept: dict[str, tuple[StatementSearch, ...]] = {}

    def planned(self, statement: Statement, framed: Framed) -> tuple[StatementSearch, ...]:
        """Return the searches whose rows a statement reads.

        Raises:
            QueryError: a call is wrong, or the statement cannot be planned.
        """
        key = plans.key_of(statement)
        searches = self._kept.get(key) if key else None
        if searches is not None:
            return searches
        asked = explained.parse(statement.sql)
        if asked is not None:
            statement = replace(statement, sql=asked.statement)
        with viewing.limits_of(statement):
            text = self.calls.read(statement)
            every = (*text.stand_ins, *self.calls.of_views(statement.sql))
            if not every:
                return ()
            predicates.check_joined(statement.sql, "a statement with a search")
            tables = {each.name: stand_ins.empty(each.schema) for each in every}
            rewritten = calls.over(statement, text)
            with stand_ins.shown(tables):
                plan = framed(rewritten)
                facts = plan_facts.of(plan.dataframe.logical_plan())
                statement_searches = tuple(self._found(statement, plan, facts, every))
        # A filter by the time of day holds for one statement.
        if key and facts.reads_only_catalog:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = statement_searches
        return statement_searches

    @contextmanager
    def reading(self, statement: Statement) -> Iterator[Statement]:
        """Show the rows of a statement's searches, and give the statement that reads them.

        Raises:
            InvalidQueryError: the searches did not run, because none can here.
        """
        if not self.calls.may_search(statement.sql):
            yield statement
            return
        with viewing.limits_of(statement):
            text = self.calls.read(statement)
        if statement.found is None:
            _refuse(each.name for each in text.stand_ins)
            yield statement
            return
        every = (*text.stand_ins, *self.calls.of_views(statement.sql))
        given = {each.name: each for each in statement.found}
        tables = {
            each.name: stand_ins.filled(replace(given[each.name], schema=each.schema))
            if each.name in given
            else stand_ins.empty(each.schema)
            for each in every
        }
        with stand_ins.shown(tables):
            yield calls.over(statement, text)

    def check(self, statement: Statement, facts: PlanFacts, optimized: object) -> None:
        """Check that the searches of a plan ran, and that it reads no column that they lack.

        Raises:
            ExecutionError: a column was not fetched, which is a bug.
            InvalidQueryError: they did not run, because none can here.
        """
        if statement.found is None and not facts.is_only_described:
            _refuse(name for name in facts.scans if stand_ins.is_stand_in(name))
        if not statement.found:
            return
        fetched = {each.name: set(each.rows.schema.names) for each in statement.found}
        rows = wanted.of(optimized, dict.fromkeys(fetched), ())
        for name, each in rows.items() if rows else ():
            if missing := each.columns - fetched[name]:
                raise ExecutionError(
                    f"column '{min(missing)}' of a search was not fetched; this is a bug: please "
                    "report it"
                )

    def _found(
        self,
        statement: Statement,
        plan: PlannedStatement,
        facts: PlanFacts,
        every: Collection[StandIn],
    ) -> Iterator[StatementSearch]:
        logical = plan.dataframe.logical_plan()
        context = self._registered.contexts.main
        tables = {
            each.name: FilteredTable(each.name, searched, each.score)
            for each in every
            if (searched := each.searched) is not None and each.name in facts.scans
        }

        def replan(sql: str) -> object:
            with viewing.without_sources(), viewing.with_every_table():
                return context.sql(sql)

        pre = filters.found(logical, tables, facts.scans, replan)
        optimized = plan.optimized or plan.dataframe.optimized_logical_plan()
        whole = {name for name, each in pre.items() if each.is_whole}
        scores = {each.name: each.score for each in every}
        rows = wanted.of(optimized, scores, whole)
        if rows is None:
            rows = {
                each.name: wanted.WantedRows(frozenset(each.schema.names), None)
                for each in every
                if each.name in facts.scans
            }
        for each in every:
            if each.name in rows and not each.is_empty:
                where = pre[each.name].where if each.name in pre else None
                wanted_rows = rows[each.name]
                yield self._search(each, wanted_rows.columns, where, wanted_rows.most, statement)

    def _search(
        self,
        stand_in: StandIn,
        columns: Collection[str],
        where: str | None,
        most: int | None,
        statement: Statement,
    ) -> StatementSearch:
        asked = stand_in.asked
        kept = [
            each for each in stand_in.schema.names if each in columns and each != stand_in.score
        ]
        limit = asked.limit if most is None else max(1, min(asked.limit, most))
        work: TableSearch | FusedSearches | RerankedRows
        if isinstance(asked, AskedSearch):
            work = _table_search(asked, kept, where, limit)
        elif isinstance(asked, AskedFusion):
            work = self._fusion(asked, kept, where, stand_in.schema)
        else:
            kept = [each for each in stand_in.schema.names if each != stand_in.score]
            inner = calls.inner(statement, asked.sql)
            work = RerankedRows(
                asked.sql, inner.parameters, asked.query or "", asked.column or "", asked.model
            )
        return StatementSearch(
            stand_in.name, stand_in.schema, work, tuple(kept), stand_in.score, limit
        )

    def _fusion(
        self, asked: AskedFusion, kept: list[str], where: str | None, schema: pa.Schema
    ) -> FusedSearches:
        base = [each for each in schema.names if each != FUSED_SCORE]
        version = self._registered.snapshot.tables[asked.searches[0].table].version
        primary = version.keys.primary if version is not None and version.keys else ()
        key = (asked.key,) if asked.key else primary or tuple(base)
        decay = [asked.decay.column] if asked.decay else []
        needed = {*kept, *key, *decay}
        fetched = [each for each in base if each in needed]
        searches = tuple(
            WeightedSearch(_table_search(each, fetched, where, each.limit), each.weight)
            for each in asked.searches
        )
        return FusedSearches(searches, key, asked.k, asked.decay)


def _refuse(names: Iterable[TableName]) -> None:
    for name in names:
        raise InvalidQueryError(
            f"{name.rpartition('.')[2]} cannot be called here: only statements, and views that are "
            "not accelerated, may search"
        )


def _table_search(
    asked: AskedSearch, columns: Collection[str], where: str | None, limit: int
) -> TableSearch:
    return TableSearch(
        asked.table,
        asked.text or "",
        asked.method,
        asked.column,
        where=where,
        columns=tuple(columns),
        limit=limit,
    )
