"""Evaluates the filter of a search over rows in memory, row by row of a share."""

import itertools
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
from datafusion import SessionContext

from caraway_core.errors import NotDistributableError
from caraway_core.ids import TableName
from caraway_engine.execution.contexts import quoted
from caraway_engine.rows.units import RowUnit
from caraway_engine.searching import functions
from caraway_engine.stored import making

_numbers = itertools.count()


class RowFilter:
    """Rows of a share with their numbers, as a table to filter. Threads may share it."""

    def __init__(self, table: TableName, units: Sequence[RowUnit]) -> None:
        self._alias = table.rpartition(".")[2]
        self._number = _free("row_number", units)
        self._units = units
        """Their rows are read, so they are kept."""
        batches, first = [], 0
        for unit in units:
            batches.append(_numbered(unit.batch, self._number, first))
            first += unit.batch.num_rows
        self._table = making.table([batches], batches[0].schema)

    def passing(self, context: SessionContext, where: str) -> pa.ChunkedArray:
        """Return the numbers of the rows that pass, from 0 over all units.

        Raises:
            NotDistributableError: the predicate cannot be evaluated over a share.
        """
        name = TableName(f"share_{next(_numbers)}")
        context.register_table(name, self._table)
        try:
            sql = f'SELECT "{self._number}" FROM {quoted(name)} AS "{self._alias}" WHERE {where}'
            return context.sql(sql).to_arrow_table().column(0)
        except Exception as exc:
            # As a statement it fails with its own message, or reads what is not here.
            raise NotDistributableError(f"the filter of a search: {exc}") from exc
        finally:
            with suppress(Exception):
                context.deregister_table(name)


def context() -> SessionContext:
    """Create a context for filters."""
    made = SessionContext()
    functions.register(made)
    return made


def _numbered(batch: pa.RecordBatch, name: str, first: int) -> pa.RecordBatch:
    import numpy as np  # Slow to import, and most processes never search.

    numbers = pa.array(np.arange(first, first + batch.num_rows), pa.int64())
    schema = batch.schema.append(pa.field(name, pa.int64(), nullable=False))
    return pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)


def _free(name: str, units: Sequence[RowUnit]) -> str:
    taken = set(units[0].batch.schema.names)
    while name in taken:
        name += "_"
    return name
