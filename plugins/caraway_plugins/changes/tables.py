"""Converts decoded events to a table with the columns of a dataset's log."""

from typing import Any

import pyarrow as pa

from caraway_core.changes import Changes, Op, log_schema
from caraway_plugins.changes import columns
from caraway_plugins.changes.columns import BadValueError
from caraway_plugins.changes.envelopes import EnvelopeRun, Envelopes
from caraway_plugins.changes.target import BadChangesError, ChangeTarget

_WHOLE_ROWS = (Op.INSERT, Op.UPSERT, Op.KEEP)


def made(read: Envelopes, target: ChangeTarget) -> Changes:
    """Convert the changes of events to a table.

    Raises:
        BadChangesError: a value does not fit its column.
        ImpreciseError: see `columns.array`.
    """
    schema = log_schema(target.schema)
    tables = [_table(run, target, schema, read.is_exact) for run in read.runs if run.ops]
    rows = pa.concat_tables(tables) if tables else schema.empty_table()
    return Changes(rows, read.received)


def _table(run: EnvelopeRun, target: ChangeTarget, schema: pa.Schema, is_exact: bool) -> pa.Table:
    arrays = [_column(run, field, is_exact) for field in target.schema]
    arrays += [pa.array(run.ops, pa.int8()), pa.array(run.offsets, pa.binary())]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(run: EnvelopeRun, field: pa.Field, is_exact: bool) -> pa.Array:
    name = field.name
    given: list[Any] = [row.get(name) for row in run.rows]
    if not field.nullable and None in given:
        _check_present(run, given, name)
    try:
        return columns.array(given, field.type, run.meaning.of(name), is_exact)
    except BadValueError as exc:
        position = run.positions[exc.index]
        raise BadChangesError(
            f"event {position}: column '{name}{exc.inner}': {exc.reason}"
        ) from exc


def _check_present(run: EnvelopeRun, given: list[Any], name: str) -> None:
    for index, (value, op) in enumerate(zip(given, run.ops, strict=True)):
        if value is None and op in _WHOLE_ROWS:
            raise BadChangesError(
                f"event {run.positions[index]}: column '{name}' is missing or NULL, but the "
                "dataset declares it as not nullable"
            )
