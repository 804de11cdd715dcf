"""Rows of answers as texts, in the form in which faults list them."""

import math
from datetime import timedelta

import pyarrow as pa

from tests.engine.known_faults.case import Row


def rows(table: pa.Table) -> list[tuple[str, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return rows_of(tuple(zip(*columns, strict=True)))


def rows_of(given: tuple[Row, ...]) -> list[tuple[str, ...]]:
    return sorted(tuple(map(_text, row)) for row in given)


def _text(value: object) -> str:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else str(value + 0.0)
    if isinstance(value, timedelta):
        # With pandas, pyarrow makes its own kind of it, which is written in another way.
        return str(timedelta(value.days, value.seconds, value.microseconds))
    return str(value)
