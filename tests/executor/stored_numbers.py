"""An executor that keeps the rows of an accelerated table of numbers."""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa

from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from tests.kit.engine import snapshot

NUMBERS = pa.table({"k": pa.array(range(1000)), "g": pa.array([n % 7 for n in range(1000)])})


def executor(
    tables: Mapping[str, TableSpec | str], memory_limit_bytes: int | None = None
) -> LocalExecutor:
    local = LocalExecutor(EngineSettings(2, memory_limit_bytes))
    assert local.install(snapshot(tables)) == {}
    return local


def everything() -> pa.Table:
    zone = dt.timezone(dt.timedelta(hours=2))
    return pa.table({
        "i": pa.array([1, None, 3], pa.int8()),
        "u": pa.array([1, None, 2**64 - 1], pa.uint64()),
        "f": [1.5, None, float("nan")],
        "b": [True, None, False],
        "s": ["a", None, ""],
        "large": pa.array(["a", None, "b"], pa.large_string()),
        "view": pa.array(["a text of more than twelve", None, "b"], pa.string_view()),
        "bytes": [b"a", None, b""],
        "byte_view": pa.array([b"a", None, b"some more than twelve"], pa.binary_view()),
        "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
        "d": pa.array([Decimal("1.23"), None, Decimal("-9.99")], pa.decimal128(5, 2)),
        "wide": pa.array([Decimal("1.23"), None, Decimal("-9.99")], pa.decimal256(50, 2)),
        "day": [dt.date(2024, 2, 29), None, dt.date(1969, 1, 1)],
        "time": [dt.time(1, 2, 3, 4), None, dt.time(0)],
        "at": pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1900, 1, 1)],
                       pa.timestamp("ns")),
        "zoned": pa.array([dt.datetime(2024, 1, 1, tzinfo=zone), None, None],
                          pa.timestamp("ms", "Europe/Berlin")),
        "took": pa.array([dt.timedelta(seconds=1), None, None], pa.duration("us")),
        "dict": pa.array(["x", None, "x"]).dictionary_encode(),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
        "three": pa.array([[1, 2, 3], None, [4, 5, 6]], pa.list_(pa.int32(), 3)),
        "struct": pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}]),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    })  # fmt: skip
