"""Plans over tables that have a log: each reads all of them where the statement says.

Such statements are planned in a context of their own, where the tables and the views over them
stand in place of the others for a moment; the plan is then run like any.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import MappingProxyType
from typing import Any, Protocol

from datafusion import SessionContext
from datafusion.catalog import Table

from caraway_core.ids import TableName
from caraway_engine.execution.contexts import CATALOG, quoted
from caraway_engine.sessions.plans import StatementPlan
from caraway_engine.sessions.versions import Shown
from caraway_engine.statements import viewing

_CACHED_PLANS = 512


class Showable(Protocol):
    """A table as a statement is to see it."""

    @property
    def table(self) -> Table: ...


class Positions:
    """Makes such plans, one at a time, and keeps those at the positions that were read last.

    `views` has the text of each view of the catalog and what it reads, in the order in which they
    can be made.
    """

    def __init__(
        self,
        make_context: Callable[[], SessionContext],
        views: dict[TableName, tuple[str, frozenset[TableName]]],
    ) -> None:
        self._make_context = make_context
        self._context: SessionContext | None = None
        self._planning = Lock()
        self._plans: OrderedDict[str, StatementPlan] = OrderedDict()
        self._lock = Lock()
        self._views = views

    def planned(
        self,
        views: Mapping[TableName, Showable],
        sql: str,
        plan: Callable[[SessionContext], Any],
        bound: Mapping[TableName, TableName] = MappingProxyType({}),
    ) -> Any:
        """Return the logical plan of a statement with tables as these views have them.

        A table of `bound` is read from the other one that is named there.
        """
        self._forget(views)
        with self._planning:
            if self._context is None:
                self._context = self._make_context()
            with self._shown(self._context, views, sql, bound):
                return plan(self._context).logical_plan()

    def recall(self, sql: str, views: Shown) -> StatementPlan | None:
        """Return the plan of a statement at just these positions, if it was kept."""
        with self._lock:
            plan = self._plans.get(sql)
            if plan is None or plan.views != views:
                return None
            self._plans.move_to_end(sql)
            return plan

    def remember(self, sql: str, plan: StatementPlan) -> None:
        """Keep a plan."""
        with self._lock:
            self._plans[sql] = plan
            if len(self._plans) > _CACHED_PLANS:
                self._plans.popitem(last=False)

    def _forget(self, views: Mapping[TableName, Showable]) -> None:
        """Let go of plans that read other positions: each holds its rows in memory."""
        with self._lock:
            for sql, known in list(self._plans.items()):
                both = known.views.keys() & views.keys()
                if any(known.views[table] is not views[table] for table in both):
                    del self._plans[sql]

    @contextmanager
    def _shown(
        self,
        context: SessionContext,
        views: Mapping[TableName, Showable],
        sql: str,
        bound: Mapping[TableName, TableName],
    ) -> Iterator[None]:
        replaced: list[tuple[TableName, Table]] = []
        try:
            for name, view in views.items():
                replaced.append((name, _replaced(context, name, view.table)))
            for name, source in bound.items():
                with viewing.with_sources():
                    other = context.sql(f"SELECT * FROM {quoted(source)}").into_view()
                replaced.append((name, _replaced(context, name, other)))
            changed = {*views, *bound}
            for name in self._named(sql):
                text, behind = self._views[name]
                if not behind.isdisjoint(changed):
                    made = context.sql(text).into_view()
                    replaced.append((name, _replaced(context, name, made)))
            yield
        finally:
            for name, table in reversed(replaced):
                _replaced(context, name, table)

    def _named(self, sql: str) -> list[TableName]:
        """Return the views whose names stand in a statement, or in such views; in their order.

        Plans do not tell: what a view stands for is in them, and its name is not.
        """
        texts = [sql.lower()]
        found: list[TableName] = []
        for name, (text, _) in reversed(self._views.items()):
            bare = name.rpartition(".")[2].lower().replace('"', '""')
            if any(bare in each for each in texts):
                found.append(name)
                texts.append(text.lower())
        return found[::-1]


def _replaced(context: SessionContext, name: TableName, table: Table) -> Table:
    """Put a table in the place of another, which is returned."""
    schema_name, _, bare = name.rpartition(".")
    schema = context.catalog(CATALOG).schema(schema_name or "public")
    before = schema.table(bare)
    schema.deregister_table(bare)
    schema.register_table(bare, table)
    return before
