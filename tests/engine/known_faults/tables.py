"""The tables over which known faults of the engine show."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from tests.differential import datasets
from tests.differential.datasets import SINGLE, Dataset

_NAN, _INF = float("nan"), float("inf")
_HALVES = (0.5, 0.5)
VIEWS = {
    "matched": "SELECT t.v, t.k AS a, u.k AS b FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k",
    "matched_again": "SELECT * FROM matched",
    "labelled": "SELECT 'a' AS x, * FROM texts",
    "shown": "SELECT id, s FROM required",
    "ones": "SELECT id, CASE WHEN id < 2 THEN s END AS x FROM nested",
    "counted": "SELECT 't' AS c, count(*) AS n FROM t UNION ALL SELECT 'u', count(*) FROM u",
}
_SINGLE = frozenset({"one_file", "many", "named"})


def build(folder: Path, is_backwards: bool = False) -> Dataset:
    """Write each table as one or two files, if wanted with its last row first."""
    for name, forwards in tables().items():
        table = _backwards(forwards) if is_backwards else forwards
        spread = SINGLE if name in _SINGLE or table.num_rows < 2 else _HALVES
        rows_of_a_group = 2 if table.num_rows < 100 else 10_000
        datasets.write(folder / name, table, spread, rows_of_a_group)
    return Dataset("faulty", folder, VIEWS)


def _backwards(table: pa.Table) -> pa.Table:
    return table.take(pa.array(reversed(range(table.num_rows)), pa.int64()))


def tables() -> dict[str, pa.Table]:
    return {
        "t": pa.table({
            "k": pa.array([1, 2, 2, None, 3], pa.int64()),
            "v": pa.array([10, 20, 30, 40, 50], pa.int64()),
        }),
        "u": pa.table({
            "k": pa.array([1, 2, 2, 2, None, 4], pa.int64()),
            "w": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        }),
        "many": pa.table({"k": pa.array([n % 3 for n in range(20_000)], pa.int64())}),
        "named": pa.table({
            "k": pa.array([1, 2], pa.int64()), "c": pa.array([5, 5], pa.int64()),
        }),
        "one_file": pa.table({"v": pa.array([30, 10, 20], pa.int64())}),
        "e": pa.table({"k": pa.array([], pa.int64()), "w": pa.array([], pa.int64())}),
        "one": pa.table({"k": pa.array([7], pa.int64())}),
        "floats": pa.table({
            "id": pa.array(range(8), pa.int64()),
            "g": pa.array([1, 1, 1, 2, 2, 2, 3, 3], pa.int64()),
            "f": pa.array([_NAN, 1.0, 2.0, 1.0, _NAN, 2.0, -0.0, 0.0]),
            "i": pa.array([1.0, _INF, 2.0, 3.0, 4.0, _NAN, 5.0, 6.0]),
        }),
        "big": pa.table({
            "id": pa.array([1, 2], pa.int64()),
            "x": pa.array([2**63 - 1, 1], pa.int64()),
            "m": pa.array([-(2**63), 5], pa.int64()),
            "s": pa.array([2**31 - 1, 1], pa.int32()),
            "y": pa.array([2**64 - 1, 1], pa.uint64()),
            "d": pa.array([Decimal("9" * 38)] * 2, pa.decimal128(38, 0)),
            "c": pa.array([Decimal("1.50"), Decimal("2.50")], pa.decimal128(9, 2)),
        }),
        # 200 years each: two of them are more nanoseconds than 64 bits hold.
        "lengths": pa.table({
            "id": pa.array([1, 2], pa.int64()),
            "a": pa.array([dt.datetime(1900, 1, 1)] * 2, pa.timestamp("ns")),
            "b": pa.array([dt.datetime(2100, 1, 1)] * 2, pa.timestamp("ns")),
        }),
        "texts": pa.table({"s": ["a", "a"], "y": pa.array([None, "c"], pa.string())}),
        "lists": pa.table({
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "e": pa.array([[1, 2], None, [], [None, 2, 1]], pa.list_(pa.int64())),
            "s": pa.array([["a"], ["b", "b"], None, ["c", "d"]], pa.list_(pa.string())),
        }),
        "required": pa.table({
            "id": pa.array([1, 2, 3], pa.int64()),
            "s": pa.array(
                [{"a": 5, "b": "x"}, None, {"a": 6, "b": None}],
                pa.struct([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())]),
            ),
        }),
        "nested": pa.table({
            "id": pa.array([1, 2, 3], pa.int64()),
            "s": pa.array([{"a": 1}, {"a": 2}, None], pa.struct([("a", pa.int64())])),
            "m": pa.array([[("k", 1)], [("k", 2)], None], pa.map_(pa.string(), pa.int64())),
        }),
        "clock": pa.table({
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "tod": pa.array([dt.time(14), None, dt.time(10), dt.time(14)], pa.time64("us")),
            "exact": pa.array([dt.time(9), dt.time(10), None, dt.time(9)], pa.time64("ns")),
            "day": pa.array([dt.datetime(2024, 6, n, 24 - n) for n in (10, 14, 10, 20)]),
            "seen": pa.array(
                [dt.datetime(2024, 6, 1, 9, 0, 0, n * 1000) for n in (1, 2, 3)] + [None],
                pa.timestamp("ms"),
            ),
        }),
        "moments": pa.table({
            "id": pa.array([1, 2], pa.int64()),
            "at": pa.array([dt.datetime(2024, 6, 1, 10), dt.datetime(2024, 6, 1, 14)]),
            "ny": pa.array([dt.datetime(2024, 6, 1, 10), dt.datetime(2024, 6, 1, 14)]).cast(
                pa.timestamp("us", "UTC")
            ).cast(pa.timestamp("us", "America/New_York")),
        }),
    }  # fmt: skip
