"""Facts of rows in memory, from a sample of them."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.tables.ranges import number_of
from caraway_engine.join_orders.facts import ColumnFacts, RowFacts
from caraway_engine.rows import choosing

_SAMPLE_ROWS, _RUN_ROWS = 8192, 1024


def facts(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> RowFacts:
    """Measure rows: their number, and of each column the range and the different values."""
    rows = sum(each.num_rows for each in batches)
    sample = _sample(batches, rows)
    runs = [each.slice(each.num_rows // 2, _RUN_ROWS) for each in batches[:: len(batches) // 4 + 1]]
    found = dict[str, ColumnFacts]()
    for place, field in enumerate(schema):
        facts = _column([each.column(place) for each in sample], rows)
        most = rows * _changing([each.column(place) for each in runs])
        found[field.name] = facts.within(max(1.0, most))
    return RowFacts(float(rows), found)


def first(
    schema: pa.Schema,
    batches: Sequence[pa.RecordBatch],
    rows: float,
    known: Mapping[str, ColumnFacts],
) -> dict[str, ColumnFacts]:
    """Return the facts of columns whose ranges may be known, from the first rows of a table."""
    found = dict[str, ColumnFacts]()
    for place, field in enumerate(schema):
        columns = [each.column(place) for each in batches]
        facts = known.get(field.name)
        if facts is None:
            facts = replace(_column(columns, int(rows)), least=None, greatest=None)
        found[field.name] = facts.within(max(1.0, rows * _changing(columns)))
    return found


def _sample(batches: Sequence[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    """Return single rows from all over the rows, because neighbours are often alike."""
    if rows <= _SAMPLE_ROWS:
        return list(batches)
    # Rows at equal distances would be alike where values repeat.
    wanted = sorted(Random(0).sample(range(rows), _SAMPLE_ROWS))
    found, first = list[pa.RecordBatch](), 0
    for batch in batches:
        end = first + batch.num_rows
        here = wanted[bisect_left(wanted, first) : bisect_left(wanted, end)]
        found.append(choosing.taken(batch, pa.array([row - first for row in here], pa.int64())))
        first = end
    return found


def _changing(arrays: Sequence[pa.Array]) -> float:
    """Return how many different values neighbours have, for each of them.

    Rows with the same value are often neighbours, which single rows of a sample do not show.
    """
    if not arrays or not pa.types.is_integer(arrays[0].type):
        return 1.0
    values = pa.chunked_array(arrays)
    return len(values.unique()) / max(1, len(values))


def _column(arrays: Sequence[pa.Array], rows: int) -> ColumnFacts:
    if not arrays:
        return ColumnFacts(0.0)
    kind = arrays[0].type
    if pa.types.is_string_view(kind):
        arrays = [each.cast(pa.string()) for each in arrays]
    elif not _is_counted(kind):
        return ColumnFacts()
    values = pa.chunked_array(arrays).drop_null()
    if not len(values):
        return ColumnFacts(1.0)
    counts = values.value_counts().field("counts")
    once, twice = (pc.sum(pc.equal(counts, n).cast(pa.int64())).as_py() for n in (1, 2))
    # The estimator of Chao for values that a sample does not show.
    distinct = len(counts) + once * once / (2 * max(1, twice))
    if len(values) >= rows:
        distinct = float(len(counts))
    elif once == len(values):
        distinct = float(rows)
    least, greatest = _range(values)
    if least is not None and greatest is not None:
        distinct = min(distinct, _steps(kind, least, greatest, len(values)))
    return ColumnFacts(max(1.0, min(distinct, float(rows))), least, greatest)


def _is_counted(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_decimal128(kind)
        or types.is_date(kind)
        or types.is_string(kind)
        or types.is_timestamp(kind)
    )


def _range(values: pa.ChunkedArray) -> tuple[float | None, float | None]:
    if pa.types.is_string(values.type):
        return None, None
    if pa.types.is_timestamp(values.type):
        # Years that Python does not know raise errors.
        values = values.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
        found = pc.min_max(values).as_py()
        return found["min"] / 86_400, found["max"] / 86_400
    found = pc.min_max(values).as_py()
    return number_of(found["min"]), number_of(found["max"])


def _steps(kind: pa.DataType, least: float, greatest: float, seen: int) -> float:
    """Return how many values of a type are in a range that is as wide as a sample suggests."""
    if pa.types.is_timestamp(kind):
        return float("inf")
    step = 10.0**-kind.scale if pa.types.is_decimal(kind) else 1.0
    return (greatest - least) / step * (1 + 2 / seen) + 1
