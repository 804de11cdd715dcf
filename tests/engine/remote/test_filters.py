import math
import struct
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from datafusion import SessionContext

from caraway_core.tables import RemoteColumn
from caraway_engine.remote import filters
from caraway_engine.remote.kinds import NotPushableError
from caraway_engine.remote.locally import LocalCondition
from caraway_engine.remote.words import SqlWriter
from caraway_plugins.sources.postgres.dialect import POSTGRES

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0000))[0]
WRITER = SqlWriter(POSTGRES)
DOUBLES = [NEGATIVE_NAN, -math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan, None]
ROWS = pa.record_batch(
    {
        "i": pa.array([*range(8), None], pa.int64()),
        "f": pa.array(DOUBLES, pa.float64()),
        "g": pa.array(DOUBLES, pa.float32()),
        "s": pa.array(["", "a", "it's", "é", "z", None, "A", "b", "c"]),
        "b": pa.array([True, False, None] * 3),
        "t": pa.array([*range(8), None], pa.timestamp("us", "UTC")),
        "d": pa.array([*range(8), None], pa.int32()).cast(pa.date32()),
        "n": pa.array([*range(8), None], pa.int64()).cast(pa.decimal128(22, 2)),
    }
)
CONDITIONS = [
    "i > 3", "i <> 3", "NOT (i = 3)", "i IN (1, 2, 3, 4, 5)", "i NOT IN (1, 2, 3, 4, 5)",
    "i BETWEEN 2 AND 4", "i IS NULL", "i IS NOT NULL", "i = 1 OR i IS NULL", "b", "NOT b",
    "s = 'it''s'", "s > 'a'", "s IN ('a', 'é', 'z', 'b', 'c')", "t > '1970-01-01T00:00:00.000003Z'",
    "d >= DATE '1970-01-04'", "n < 2.5", "n = 3", "true", "false", "NULL",
    *(f"{column} {sign} {value}" for column in "fg" for sign in ("=", "<", "<=", ">", ">=", "<>")
      for value in ("0.0", "-0.0", "1.0", "'NaN'::double", "'-inf'::double")),
]  # fmt: skip
"""Forms that the engine may push; in others it pushes nothing."""


class Spied(ds.InMemoryDataset):  # type: ignore[misc] # pyarrow is untyped to us
    """A dataset that keeps the filters that the engine pushes, and filters as we do."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        super().__init__(pa.Table.from_batches([rows]))
        self.rows = rows
        self.pushed: list[Any] = []

    def get_fragments(self, filter: Any = None) -> Any:
        return iter([self])

    def scanner(
        self, schema: Any = None, columns: Any = None, filter: Any = None, **_others: Any
    ) -> Any:
        if schema is not None:
            self.pushed.append(filter)
        condition = LocalCondition.from_filter(filter)
        assert condition.unread is None
        names = self.rows.schema.names if columns is None else columns
        parts = [part.select(names) for part in condition.parts(self.rows)]
        chosen = pa.schema([self.rows.schema.field(name) for name in names])
        return ds.Scanner.from_batches(pa.RecordBatchReader.from_batches(chosen, parts))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_filters_are_applied_as_the_engine_does(condition: str) -> None:
    spied, context = Spied(ROWS), SessionContext()
    context.register_dataset("pushed", spied)
    context.register_record_batches("plain", [[ROWS]])
    sql = "SELECT i, f, s FROM {} WHERE " + condition
    expected = context.sql(sql.format("plain")).to_arrow_table()
    assert repr(context.sql(sql.format("pushed")).to_arrow_table().to_pydict()) == repr(
        expected.to_pydict()
    )


def test_comparisons_are_pushed() -> None:
    """A comparison that is not pushed makes every filter a scan of the whole table."""
    spied, context = Spied(ROWS), SessionContext()
    context.register_dataset("pushed", spied)
    context.sql("SELECT i FROM pushed WHERE i > 3 AND s = 'a' AND i IN (1,2,3,4)").collect()
    (pushed,) = spied.pushed
    found = filters.conjuncts(filters.read(pushed))
    assert [each.name for each in found] == ["greater", "equal", "is_in"]


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (ds.field("i") > 5, '("i" > (5)::int8)'),
        (ds.field("s").isin(["a", "b'"]), "(\"s\" IN ('a'::text, 'b'''::text))"),
        (~(ds.field("b") | ds.field("i").is_null()), '(NOT ("b" OR ("i" IS NULL)))'),
        (ds.field("d").is_valid(), '("d" IS NOT NULL)'),
    ],
)
def test_words(expression: Any, sql: str) -> None:
    known = {each.name: RemoteColumn(each.name, each.type, True) for each in ROWS.schema}
    assert filters.sql(filters.read(expression), known, WRITER).sql == sql


def test_what_is_not_known_is_left_to_pyarrow() -> None:
    expression = ds.field("i") + 1 > 3
    assert LocalCondition.from_filter(expression).unread is not None
    (part,) = LocalCondition.from_filter(expression).parts(ROWS)
    assert part["i"].to_pylist() == [3, 4, 5, 6, 7]
    with pytest.raises(NotPushableError):
        filters.sql(filters.read(expression), {"i": RemoteColumn("i", pa.int64(), True)}, WRITER)


def test_nanoseconds_are_not_sent() -> None:
    moment = pa.scalar(1, pa.timestamp("ns"))
    call = filters.read(ds.field("t") == moment)
    known = {"t": RemoteColumn("t", pa.timestamp("ns"), True)}
    with pytest.raises(NotPushableError):
        filters.sql(call, known, WRITER)
