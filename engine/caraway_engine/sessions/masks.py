"""Evaluates the filter of a search over rows in memory, row by row of a share."""

import itertools
import secrets
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import DataFrame, RuntimeEnvBuilder, SessionContext

from caraway_core.errors import NotDistributableError
from caraway_core.ids import TableName
from caraway_core.sqltext import lexer
from caraway_core.tables import structs
from caraway_engine import known_faults
from caraway_engine.execution import contexts
from caraway_engine.execution.contexts import Pool, quoted
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.known_faults import DoubtedRelations
from caraway_engine.rows.units import RowUnit
from caraway_engine.sessions.registered import READ_ONLY
from caraway_engine.statements import bounds, plan_facts
from caraway_engine.statements.plan_facts import PlanFacts
from caraway_engine.stored import making

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_KEPT = 16
"""The most filters whose rows are remembered, with a bit for each row."""
_numbers = itertools.count()


class RowFilter:
    """Rows of a share with their numbers, as a table to filter. Threads may share it.

    The searches by vectors and by words of one request have the same filter, and so do many
    requests. So the rows that passed are remembered.
    """

    def __init__(self, table: TableName, units: Sequence[RowUnit]) -> None:
        self._alias = table.rpartition(".")[2]
        # Nobody can guess the name, so no filter reads the numbers.
        self._number = f"row_{secrets.token_hex(8)}"
        self._units = units
        """Their rows are read, so they are kept."""
        batches, first = [], 0
        for unit in units:
            batches.append(_numbered(unit.batch, self._number, first))
            first += unit.batch.num_rows
        self._count = first
        self._table = making.table([batches], batches[0].schema)
        self._kept: OrderedDict[str, NDArray[np.uint8]] = OrderedDict()
        self._evaluating: dict[str, Lock] = {}
        self._lock = Lock()

    def passing(self, context: SessionContext, where: str) -> "tuple[NDArray[np.bool_], bool]":
        """Return for each row, over all units, whether it passes, and whether that may change.

        It may where the predicate depends on the time, or on chance.

        Raises:
            NotDistributableError: the predicate cannot be evaluated over a share.
        """
        import numpy as np

        with self._lock:
            evaluating = self._evaluating.setdefault(where, Lock())
        with evaluating:
            # Whoever waited here finds what the first thread found.
            if (bits := self._remembered(where)) is not None:
                return np.unpackbits(bits, count=self._count).view(np.bool_), False
            try:
                with self._planned(context, where) as (rows, facts):
                    passing = np.zeros(self._count, np.bool_)
                    passing[rows.to_arrow_table().column(0).to_numpy()] = True
                if not facts.is_volatile:
                    self._remember(where, np.packbits(passing))
            finally:
                with self._lock:
                    self._evaluating.pop(where, None)
        return passing, facts.is_volatile

    def _remembered(self, where: str) -> "NDArray[np.uint8] | None":
        with self._lock:
            if where in self._kept:
                self._kept.move_to_end(where)
            return self._kept.get(where)

    def _remember(self, where: str, bits: "NDArray[np.uint8]") -> None:
        with self._lock:
            self._kept[where] = bits
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def check(self, context: SessionContext, where: str) -> None:
        """Check that a predicate can be evaluated over a share.

        Raises:
            NotDistributableError: it cannot; the message says why, for users.
        """
        try:
            with self._planned(context, where):
                pass
        except NotDistributableError as exc:
            # The engine's message would have names that nobody should know.
            reads = any(each.text.upper() == "SELECT" for each in lexer.tokens(where))
            why = "reads other tables" if reads else "can only be evaluated by a statement"
            raise NotDistributableError(f"the filter {why}") from exc

    @contextmanager
    def _planned(
        self, context: SessionContext, where: str
    ) -> Iterator[tuple[DataFrame, PlanFacts]]:
        name = TableName(f"share_{next(_numbers)}")
        sql = f'SELECT "{self._number}" FROM {quoted(name)} AS "{self._alias}" WHERE {where}'
        context.register_table(name, self._table)
        try:
            bounds.check(sql)
            # The same remedies as for statements, so that the same rows pass.
            is_unmasked = any(map(structs.has_required, self._table.schema))
            names = frozenset({name}) if is_unmasked else frozenset()
            statement = known_faults.planned(
                context,
                sql,
                lambda text: context.sql(text, options=READ_ONLY),
                doubted=DoubtedRelations(unmasked=names),
            )
            facts = plan_facts.of(statement.dataframe.logical_plan())
            if (reads := facts.scans.keys()) != {name}:
                raise ValueError(f"it reads {', '.join(sorted(reads))}")
            yield statement.dataframe, facts
        except Exception as exc:
            # As a statement it fails with its own message, or reads what is not here.
            raise NotDistributableError(f"the filter of a search: {exc}") from exc
        finally:
            with suppress(Exception):
                context.deregister_table(name)


@dataclass(slots=True)
class ContextFilter:
    """The rows of a share, and the context that evaluates filters of them.

    `is_volatile` says whether other rows may have passed a filter the next time.
    """

    rows: RowFilter
    context: SessionContext
    is_volatile: bool = False

    def passing(self, where: str) -> "NDArray[np.bool_]":
        """Return which rows pass; see `RowFilter.passing`."""
        passing, is_volatile = self.rows.passing(self.context, where)
        self.is_volatile |= is_volatile
        return passing

    def check(self, where: str) -> None:
        """Check that a predicate can be evaluated; see `RowFilter.check`."""
        self.rows.check(self.context, where)


def context(settings: EngineSettings) -> SessionContext:
    """Create a context for filters."""
    return contexts.new(
        settings, settings.target_partitions, Pool(RuntimeEnvBuilder()), measured=False
    )


def _numbered(batch: pa.RecordBatch, name: str, first: int) -> pa.RecordBatch:
    import numpy as np  # Slow to import, and most processes never search.

    numbers = pa.array(np.arange(first, first + batch.num_rows), pa.int64())
    schema = batch.schema.append(pa.field(name, pa.int64(), nullable=False))
    return pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)
