"""Plans statements over tables with a log, each at the log position that the statement names.

Such statements are planned in a separate context. Tables at that position, and the views over them,
replace the registered tables while the plan is made. The plan then runs like any other.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import MappingProxyType
from typing import Any, Protocol

from datafusion import SessionContext
from datafusion.catalog import Table

from caraway_core.ids import TableName
from caraway_engine.execution.contexts import place, quoted, schema_of
from caraway_engine.sessions.plans import StatementPlan
from caraway_engine.sessions.versions import Shown
from caraway_engine.statements import viewing

_CACHED_PLANS = 512


class Showable(Protocol):
    """A table to show to a statement in place of the registered one."""

    @property
    def table(self) -> Table: ...


class Positions:
    """Plans statements at log positions, one at a time, and caches the recent plans.

    `views` has the SQL of each catalog view and the tables that it reads, in dependency order.
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
        found: Collection[TableName] = (),
    ) -> object:
        """Return the logical plan of a statement that sees the tables as these views have them.

        A table in `bound` is read from the table that is named there. The views over tables in
        `found`, which are searches, are planned again, too.
        """
        self._forget(views)
        with self._planning:
            if self._context is None:
                self._context = self._make_context()
            with self._shown(self._context, views, sql, bound, found):
                return plan(self._context).logical_plan()

    def recall(self, sql: str, views: Shown) -> StatementPlan | None:
        """Return the cached plan of a statement at exactly these positions, or None."""
        with self._lock:
            plan = self._plans.get(sql)
            if plan is None or plan.views != views:
                return None
            self._plans.move_to_end(sql)
            return plan

    def remember(self, sql: str, plan: StatementPlan) -> None:
        """Cache a plan, and evict the least recently used one if the cache is full."""
        with self._lock:
            self._plans[sql] = plan
            if len(self._plans) > _CACHED_PLANS:
                self._plans.popitem(last=False)

    def _forget(self, views: Mapping[TableName, Showable]) -> None:
        """Drop plans at other positions, because each plan holds its rows in memory."""
        with self._lock:
            for sql, plan in list(self._plans.items()):
                both = plan.views.keys() & views.keys()
                if any(plan.views[table] is not views[table] for table in both):
                    del self._plans[sql]

    @contextmanager
    def _shown(
        self,
        context: SessionContext,
        views: Mapping[TableName, Showable],
        sql: str,
        bound: Mapping[TableName, TableName],
        names: Collection[TableName],
    ) -> Iterator[None]:
        replaced: list[tuple[TableName, Table]] = []
        try:
            for name, view in views.items():
                replaced.append((name, _replaced(context, name, view.table)))
            for name, source in bound.items():
                with viewing.with_sources(), viewing.with_every_table():
                    other = context.sql(f"SELECT * FROM {quoted(source)}").into_view()
                replaced.append((name, _replaced(context, name, other)))
            changed = {*views, *bound, *names}
            for name in self._named(sql):
                text, behind = self._views[name]
                if not behind.isdisjoint(changed):
                    with viewing.with_every_table():
                        made = context.sql(text).into_view()
                    replaced.append((name, _replaced(context, name, made)))
            yield
        finally:
            for name, table in reversed(replaced):
                _replaced(context, name, table)

    def _named(self, sql: str) -> list[TableName]:
        """Return the views that a statement names, directly or through other views, in order.

        Plans do not show this: a view is expanded in the plan and its name is lost.
        """
        texts = [sql.lower()]
        names: list[TableName] = []
        for name, (text, _) in reversed(self._views.items()):
            bare = name.rpartition(".")[2].lower().replace('"', '""')
            if any(bare in each for each in texts):
                names.append(name)
                texts.append(text.lower())
        return names[::-1]


def _replaced(context: SessionContext, name: TableName, table: Table) -> Table:
    """Replace a table, and return the one that was registered before."""
    schema, (_, bare) = schema_of(context, name), place(name)
    with viewing.with_every_table():
        before = schema.table(bare)
    schema.deregister_table(bare)
    schema.register_table(bare, table)
    return before
