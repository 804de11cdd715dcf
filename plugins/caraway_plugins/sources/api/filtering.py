"""Filters of a request for rows: which an API is sent, and which rows pass all of them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import DatasetError
from caraway_core.tables.scanners import ColumnFilter

_PARAM = re.compile(r"\s*(.*?[^<>=\s])\s*(>=|<=|<>|=|<|>)\s*([^<>=\s]+)\s*", re.DOTALL)
_COMPARISONS: Mapping[str, Callable[[object, object], object]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class FilterParam:
    """A parameter of an API that leaves out rows which do not pass a filter."""

    column: str
    operator: str
    param: str


def read(text: str) -> tuple[FilterParam, ...]:
    """Read `column=param; column>=param`.

    Raises:
        DatasetError: it has another form.
    """
    found = []
    for part in filter(str.strip, re.split("[,;\n]", text)):
        match = _PARAM.fullmatch(part)
        if match is None:
            raise DatasetError(
                "invalid",
                f"params.filter_params has '{part.strip()}'; write 'column=param', and >=, <=, >, "
                "< or <> in place of = for other comparisons",
            )
        found.append(FilterParam(match[1], match[2], match[3]))
    return tuple(found)


def sent(params: Sequence[FilterParam], filters: Sequence[ColumnFilter]) -> dict[str, str]:
    """Return the parameters for the filters that an API is sent.

    Where two filters would be one parameter, neither is sent: the engine applies all of them.
    """
    found: dict[str, set[str]] = {}
    for each in filters:
        for param in params:
            if (param.column, param.operator) == (each.column, each.operator):
                found.setdefault(param.param, set()).add(written(each.value))
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def written(value: object) -> str:
    """Return a value as APIs write it."""
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            return (
                value.astimezone(UTC).isoformat().replace("+00:00", "Z")
                if value.tzinfo
                else (value.isoformat() + "Z")
            )
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case _:
            return str(value)


def passing(batch: pa.RecordBatch, filters: Sequence[ColumnFilter]) -> pa.RecordBatch:
    """Return the rows that pass all filters."""
    masks = [_mask(batch.column(each.column), each) for each in filters]
    for mask in masks[1:]:
        masks[0] = pc.and_(masks[0], mask)
    return batch.filter(masks[0]) if masks else batch


def _mask(column: pa.Array, filter_: ColumnFilter) -> object:
    match filter_.operator:
        case "is null":
            return pc.is_null(column)
        case "is not null":
            return pc.is_valid(column)
        case "in":
            among = pa.array(filter_.value, column.type)
            return pc.and_(pc.is_in(column, among), pc.is_valid(column))
        case _:
            value = pa.scalar(filter_.value, column.type)
            return pc.fill_null(_COMPARISONS[filter_.operator](column, value), False)
