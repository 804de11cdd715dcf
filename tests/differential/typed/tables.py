"""The tables of typed statements: few values, many NULLs, and some rows twice."""

import datetime as dt
import random
from collections.abc import Iterable
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
_NARROW = {"g": (21, SEVERAL, 5), "h": (11, SINGLE, 100)}
_NARROW_COLUMNS = ("i", "l", "d", "f", "s", "p", "t", "m")
"""Columns of tables that every database can hold."""
VIEWS = {
    "w": "SELECT i, s, CAST(count(*) AS BIGINT) AS l, max(t) AS t, true AS p, 'a' AS v "
    "FROM a GROUP BY i, s UNION ALL SELECT i, v, l, t, p, s FROM b WHERE i > 0",
    "u": "SELECT g.i, h.l, g.d, h.f, g.s, h.s AS v, g.i > 1 AS p, h.m FROM g "
    "LEFT JOIN h ON g.i = h.i AND h.p",
}
_VIEW_COLUMNS = {"w": "ilstpv", "u": "ildfsvpm"}


def _relation(name: str, columns: Iterable[str]) -> Relation:
    return Relation(name, tuple(Column(each, _KINDS[each]) for each in columns))


RELATIONS = (
    {name: _relation(name, _KINDS) for name in _TABLES}
    | {name: _relation(name, _NARROW_COLUMNS) for name in _NARROW}
    | {name: _relation(name, columns) for name, columns in _VIEW_COLUMNS.items()}
)
NESTED = [RELATIONS[name] for name in _TABLES]
"""Those with lists and structs."""


def build(folder: Path) -> Dataset:
    """Write the tables into the folder."""
    for seed, (name, (rows, spread, group_rows)) in enumerate((_TABLES | _NARROW).items()):
        chance = random.Random(seed)
        drawn = {
            column: pa.array(
                [chance.choice(_VALUES[_KINDS[column]]) for _ in range(rows)], _TYPES[column]
            )
            for column in (_KINDS if name in _TABLES else _NARROW_COLUMNS)
        }
        datasets.write(folder / name, pa.table(drawn), spread, group_rows)
    return Dataset("typed", folder, VIEWS)
