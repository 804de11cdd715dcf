"""The tables of typed statements: few values, many NULLs, and some rows twice."""

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.differential import datasets
from tests.differential.datasets import SEVERAL, SINGLE, Dataset
from tests.differential.typed.drawing import Column, Kind, Relation

_KINDS: dict[str, Kind] = {
    "i": "int", "l": "big", "d": "decimal", "f": "double", "s": "text", "v": "text", "p": "bool",
    "t": "date", "m": "stamp", "o": "time", "e": "list", "g": "struct",
}  # fmt: skip
"""The kinds of the columns; `v` is a text that is stored as a dictionary."""
_TYPES: dict[str, pa.DataType] = {
    "i": pa.int32(), "l": pa.int64(), "d": pa.decimal128(9, 2), "f": pa.float64(),
    "s": pa.string(), "v": pa.dictionary(pa.int32(), pa.string()), "p": pa.bool_(),
    "t": pa.date32(), "m": pa.timestamp("us"), "o": pa.time64("us"), "e": pa.list_(pa.int32()),
    "g": pa.struct({"x": pa.int32(), "y": pa.string()}),
}  # fmt: skip
_VALUES: dict[Kind, tuple[Any, ...]] = {
    "int": (None, 0, 1, 2, 3, -1),
    "big": (None, 0, 1, 2, 3, 40),
    "decimal": (None, *map(Decimal, ("0.00", "1.00", "1.50", "2.25", "-1.00"))),
    "double": (None, 0.0, 0.5, 1.0, 2.0, -1.5),
    "text": (None, "", "a", "b", "ab", "B"),
    "bool": (None, True, False),
    "date": (None, dt.date(2024, 1, 1), dt.date(2024, 1, 31), dt.date(2024, 2, 29)),
    "stamp": (
        None, dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 31, 12, 30),
        dt.datetime(1969, 12, 31, 23),
    ),
    "time": (None, dt.time(0), dt.time(12, 30), dt.time(23, 59, 59)),
    "list": (None, [1], [1, 2], [None], [2, None, 1]),
    "struct": (None, {"x": 1, "y": "a"}, {"x": None, "y": "a"}, {"x": 1, "y": None}),
}  # fmt: skip
_TABLES = {"a": (24, SEVERAL, 7), "b": (17, SEVERAL, 100), "c": (9, SINGLE, 100)}
RELATIONS = {
    name: Relation(name, tuple(Column(each, kind) for each, kind in _KINDS.items()))
    for name in _TABLES
}


def build(folder: Path) -> Dataset:
    """Write the tables into the folder."""
    for seed, (name, (rows, spread, group_rows)) in enumerate(_TABLES.items()):
        chance = random.Random(seed)
        drawn = {
            column: pa.array([chance.choice(_VALUES[kind]) for _ in range(rows)], _TYPES[column])
            for column, kind in _KINDS.items()
        }
        datasets.write(folder / name, pa.table(drawn), spread, group_rows)
    return Dataset("typed", folder)
