"""Small tables for joins: keys of many types with duplicates and NULLs, and common names."""

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from tests.differential import datasets
from tests.differential.datasets import SEVERAL, SINGLE, Dataset

_WORDS = ("a", "A", "b", "B", "ab", "Ab", "", "key-5", "KEY-5", "z")
_FLOATS = (0.0, 0.5, 1.0, -1.5, 2.0, 10.25, 64.0)
_DAYS = tuple(dt.date(2024, month, day) for month in (1, 2) for day in (1, 2, 29))


def build(folder: Path) -> Dataset:
    """Write all tables into the folder."""
    for name, (make, spread) in _TABLES.items():
        datasets.write(folder / name, make(), spread, 5)
    return Dataset("keys", folder)


def _chosen(chance: random.Random, values: Sequence[object], rows: int) -> list[object]:
    """Choose one value per row; one in eight is NULL."""
    return [chance.choice(values) if chance.random() < 7 / 8 else None for _ in range(rows)]


def _keys(seed: int, rows: int, key: pa.DataType, number: pa.DataType) -> pa.Table:
    chance = random.Random(seed)
    decimals = [Decimal(n) / 4 for n in range(-4, 9)]
    return pa.table({
        "k": pa.array(_chosen(chance, range(-2, 9), rows), key),
        "s": pa.array(_chosen(chance, _WORDS, rows), pa.string()),
        "f": pa.array(_chosen(chance, _FLOATS, rows), pa.float64()),
        "d": pa.array(_chosen(chance, _DAYS, rows), pa.date32()),
        "m": pa.array(_chosen(chance, decimals, rows), number),
        "v": pa.array(range(rows), pa.int64()),
    })  # fmt: skip


def _first() -> pa.Table:
    return _keys(1, 40, pa.int64(), pa.decimal128(10, 2))


def _second() -> pa.Table:
    """The same keys with other types, in another order."""
    made = _keys(2, 25, pa.int32(), pa.decimal128(14, 3))
    return made.select(["v", "m", "d", "s", "k", "f"])


def _third() -> pa.Table:
    """The same names with other meanings: `s` is a number here, and `k` a string."""
    made = _keys(3, 15, pa.int16(), pa.decimal128(8, 2))
    return made.select(["k", "s", "v", "d"]).rename_columns(["s", "k", "w", "d"])


def _fourth() -> pa.Table:
    """Unique names, some of them like those of exchanges."""
    made = _keys(4, 10, pa.int64(), pa.decimal128(10, 2))
    return made.select(["s", "k", "m", "v"]).rename_columns(["c0", "s1_c0", "s2_c1", "c1"])


def _none() -> pa.Table:
    return _first().slice(0, 0)


def _two() -> pa.Table:
    keys = [f"key-{number % 9}" for number in range(90)]
    return pa.table({"a": [f"a{number}" for number in range(90)], "b": keys})


def _customer() -> pa.Table:
    names = [f"Customer#{number}" for number in range(40)]
    return pa.table({"c_custkey": pa.array(range(40), pa.int64()), "c_name": names})


def _numbered() -> pa.Table:
    return pa.table({"i": pa.array(range(94), pa.int64()), "s": [f"n{n}" for n in range(94)]})


def _visits() -> pa.Table:
    names = [f"Customer#{number}" for number in range(94)]
    return pa.table({"i": pa.array(range(94), pa.int64()), "s": names})


_TABLES: dict[str, tuple[Callable[[], pa.Table], tuple[float, ...]]] = {
    "first": (_first, SEVERAL),
    "second": (_second, SEVERAL),
    "third": (_third, (0.5, 0.5)),
    "fourth": (_fourth, SINGLE),
    "none": (_none, SINGLE),
    "two": (_two, SEVERAL),
    "customer": (_customer, (0.5, 0.5)),
    "n1": (_numbered, (0.5, 0.5)),
    "visits": (_visits, (0.5, 0.5)),
}
