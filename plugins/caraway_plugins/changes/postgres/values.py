"""Converts PostgreSQL's text output to Arrow, one column at a time."""

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import DatasetError

Texts = Sequence[str | None]

_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}]+)')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SHOWN = 40


def column(texts: Texts, field: pa.Field) -> pa.Array:
    """Return the values of a column.

    Raises:
        DatasetError: a value does not have the column's type.
    """
    try:
        return _values(texts, field.type)
    except (pa.ArrowException, ValueError) as exc:
        shown = _culprit(texts, field.type)
        raise DatasetError(
            "schema",
            f"column '{field.name}': {shown} is not a {field.type}; "
            "declare the column under 'columns' with a type that fits, for example text",
        ) from exc


def _values(texts: Texts, type_: pa.DataType) -> pa.Array:
    if pa.types.is_list(type_):
        return _lists(texts, type_)
    if pa.types.is_binary(type_):
        return pa.array([None if text is None else _octets(text) for text in texts], type_)
    strings = pa.array(texts, pa.string())
    if pa.types.is_string(type_):
        return strings
    if pa.types.is_boolean(type_):
        return _booleans(strings)
    if pa.types.is_time(type_):
        return _times(strings, type_)
    return pc.cast(strings, type_)


def _booleans(strings: pa.Array) -> pa.Array:
    known = pc.is_in(strings, value_set=pa.array(["t", "f", None]))
    if pc.all(known).as_py() is False:
        raise ValueError("neither t nor f")
    return pc.equal(strings, "t")


def _times(strings: pa.Array, type_: pa.DataType) -> pa.Array:
    # Arrow parses times only with exactly the digits of their unit, but timestamps with any number.
    instants = pc.binary_join_element_wise("1970-01-01", strings, " ")
    return pc.cast(pc.cast(instants, pa.timestamp(type_.unit)), type_)


def _octets(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise ValueError("not in hexadecimal form")
    return bytes.fromhex(text[2:])


def _lists(texts: Texts, type_: pa.DataType) -> pa.Array:
    items: list[str | None] = []
    ends: list[int | None] = []
    for text in texts:
        start = len(items)
        if text is not None:
            items += _items(text)
        ends.append(None if text is None else start)
    offsets = pa.array([*ends, len(items)], pa.int32())
    return pa.ListArray.from_arrays(offsets, _values(items, type_.value_type), type=type_)


def _items(text: str) -> list[str | None]:
    if text.startswith("["):  # Arrays whose bounds do not begin at 1, such as [0:2]={1,2,3}.
        text = text[text.index("=") + 1 :]
    if not text.startswith("{") or not text.endswith("}") or text.startswith("{{"):
        raise ValueError("not a one-dimensional array")
    return [_item(match) for match in _ITEM.finditer(text[1:-1])]


def _item(match: "re.Match[str]") -> str | None:
    if match[1] is not None:
        return _ESCAPED.sub(r"\1", match[1])
    return None if match[2] == "NULL" else match[2]


def _culprit(texts: Texts, type_: pa.DataType) -> str:
    """Return the first value that does not fit, for an error message."""
    for text in texts:
        try:
            _values([text], type_)
        except (pa.ArrowException, ValueError):
            return repr(text if text is None or len(text) <= _SHOWN else text[:_SHOWN] + "…")
    return "a value"
