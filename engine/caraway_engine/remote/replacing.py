"""UPDATE, DELETE and MERGE of tables whose files say where each row is.

The engine finds the rows and computes new ones, when the statement runs, over the table as it is
then. So conditions and values are those of the engine, and may have subqueries. A plug-in takes the
rows out by their places, and adds the new ones, all in one commit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import pyarrow as pa
from datafusion import SessionContext, col, lit
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from caraway_core.errors import ExecutionError
from caraway_core.loading import registry
from caraway_core.protocols.remote import FILE, IS_ADDED, POSITION, RemoteInsert
from caraway_core.statements import DELETE
from caraway_core.tables import RemoteTable, TableSpec
from caraway_engine.remote import answers
from caraway_engine.remote.writing import InsertingRows, Writing

NOTHING = "no row was changed"
PLACES = (pa.field(FILE, pa.string()), pa.field(POSITION, pa.int64()))


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """Rows of a statement, their columns, and what makes replaced rows of them."""

    frame: Any
    columns: pa.Schema
    replaced: Callable[[pa.RecordBatch], pa.RecordBatch]


Plan = Callable[[TableSpec], ReplacedRows]
"""Plans the rows of a statement over a table with places."""


class ReplacingRows:
    """A statement under way that changes rows."""

    def __init__(self, table: RemoteTable, plan: Plan, run: Callable[[object], object]) -> None:
        """Take the table, what plans the rows, and what starts such a plan."""
        self._table, self._plan, self._run = table, plan, run
        self._writing: Writing | None = None
        self._is_closed = False
        self._lock = Lock()

    def write_rows(self) -> int:
        """Change the rows, and return their number."""
        replacer = answers.replacer(self._table.reader)
        assert replacer is not None
        placed = replacer.placed(self._table)
        rows = self._plan(placed)
        insert = _Replacing(replacer.replace(self._table, placed), rows.replaced)
        writing = InsertingRows(insert, partial(self._run, rows.frame), rows.columns, NOTHING)
        with self._lock:
            if self._is_closed:
                raise ExecutionError(f"the statement was stopped; {NOTHING}")
            self._writing = writing
        return writing.write_rows()

    def close(self) -> None:
        """Stop it."""
        with self._lock:
            self._is_closed = True
            writing = self._writing
        if writing is not None:
            writing.close()


@dataclass(frozen=True, slots=True)
class _Replacing:
    """A `RemoteInsert` of the replaced rows that others become."""

    inner: RemoteInsert
    replaced: Callable[[pa.RecordBatch], pa.RecordBatch]

    def insert_rows(self, rows: Iterator[pa.RecordBatch]) -> int:
        return self.inner.insert_rows(map(self.replaced, rows))

    def close(self) -> None:
        self.inner.close()


def is_replaced(spec: TableSpec | None) -> bool:
    """Return whether rows of the table are changed by their places."""
    table = spec.written if spec is not None else None
    return table is not None and registry.database_reader(table.reader).is_replacing


def columns(table: RemoteTable) -> pa.Schema:
    """Return the columns of replaced rows."""
    return pa.schema([*PLACES, pa.field(IS_ADDED, pa.bool_()), *table.schema])


def changed(context: SessionContext, write: str, plan: Any, table: RemoteTable) -> ReplacedRows:
    """Return the rows of an UPDATE or a DELETE, whose plan is over a table with places."""
    (rows,) = plan._raw_plan.inputs()
    frame = context.create_dataframe_from_logical_plan(LogicalPlan(rows))
    is_added = lit(write != DELETE).alias(IS_ADDED)
    own = (lit(None) if write == DELETE else _column(each) for each in table.schema.names)
    values = (each.alias(name) for each, name in zip(own, table.schema.names, strict=True))
    frame = frame.select(_column(FILE), _column(POSITION), is_added, *values)
    return ReplacedRows(frame, columns(table), lambda batch: batch)


def _column(name: str) -> Expr:
    return col('"' + name.replace('"', '""') + '"')
