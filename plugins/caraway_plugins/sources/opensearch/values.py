"""Values of documents as values of Python for the types of columns.

A field takes a number as a text, one value or a list of values, and `a.b` for the `b` of an object
`a`. So does a column.
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any

import pyarrow as pa

from caraway_plugins.sources.documents import json_texts

types = pa.types
Read = Callable[[Any], Any]
"""Returns the value of a field; raises ValueError if it does not fit."""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_YEAR = re.compile("[0-9]{4}")
_YEAR_MONTH = re.compile("[0-9]{4}-[0-9]{2}")
_TRUTH: Mapping[bool | str, bool] = {
    True: True, False: False, "true": True, "false": False, "": False,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expanded(source: Mapping[str, object]) -> Mapping[str, object]:
    """Return an object with objects in place of names with dots."""
    if "." not in "".join(source):
        return source
    found: dict[str, Any] = {}
    for name, value in source.items():
        *parents, last = name.split(".")
        inner = found
        for each in parents:
            inner[each] = dict(inner[each]) if isinstance(inner.get(each), dict) else {}
            inner = inner[each]
        own = inner.get(last)
        inner[last] = (
            {**own, **value} if isinstance(own, dict) and isinstance(value, dict) else value
        )
    return found


def lists_of(documents: Iterable[Mapping[str, object]]) -> frozenset[str]:
    """Return the paths of fields that have lists in documents."""
    found: set[str] = set()
    for each in documents:
        _note_lists(each, "", found)
    return frozenset(found)


def _note_lists(source: Mapping[str, object], prefix: str, found: set[str]) -> None:
    for name, value in expanded(source).items():
        path = f"{prefix}{name}"
        if isinstance(value, list):
            found.add(path)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Mapping):
                _note_lists(each, f"{path}.", found)


def at(value: Any, steps: Sequence[str]) -> object:
    """Return the value at a path within an object; lists on the way have a value for each item."""
    for number, step in enumerate(steps):
        if isinstance(value, list):
            return [at(each, steps[number:]) for each in value]
        value = expanded(value).get(step) if isinstance(value, Mapping) else None
    return value


def fitting(type_: pa.DataType) -> type:
    """Return the kind of values that are those of a type as they are: most values are."""
    return next((kind for applies, kind in _FITTING if applies(type_)), NoneType)


def read_of(type_: pa.DataType, path: str, numbered: Set[str]) -> Read:
    """Return what reads values of a field at a path for a column of a type."""
    if types.is_list(type_):
        return _list(read_of(type_.value_type, path, numbered))
    if types.is_struct(type_):
        fields = {each.name: read_of(each.type, f"{path}.{each.name}", numbered) for each in type_}
        return _struct(fields)
    if types.is_timestamp(type_):
        is_millis = type_.unit in ("s", "ms")
        return lambda value: _moment(value, path in numbered, is_millis=is_millis)
    if types.is_date(type_):
        return lambda value: _day(value, path in numbered)
    return next((read for applies, read in _READS if applies(type_)), _same)


def _same(value: object) -> object:
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else json_texts.text_of(_ordered(value))


def _ordered(value: object) -> object:
    """Return a value with the names of objects in order: servers change it when they project."""
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list) else value


def plain_text(value: object) -> str | None:
    """Return the text of a value as it is in the index."""
    if isinstance(value, list | dict):
        raise ValueError("it is a list or an object")
    text = json_texts.text_of(value)
    if isinstance(value, Decimal) and text and "E" in text:
        raise ValueError("it is a number with an exponent")  # Its text in the index is not known.
    return text


def _whole(value: object) -> object:
    if type(value) is int:
        return value
    number = _number(value)
    if number != int(number):
        raise ValueError("it is a number with a point")
    return int(number)


def _number(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError("it is not a number")
    if isinstance(value, float):
        return Decimal(repr(value))
    return Decimal(value)


def _double(value: object) -> float:
    if isinstance(value, float | Decimal):
        return float(value)
    number = _number(value)
    double = float(number)
    if isinstance(value, int) and double != value:
        raise ValueError("it has more digits than a double")
    return double


def _boolean(value: object) -> bool:
    if not isinstance(value, bool | str) or value not in _TRUTH:
        raise ValueError("it is neither true nor false")
    return _TRUTH[value]


def _bytes(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError("it is not Base64")
    return base64.b64decode("".join(value.split()), validate=True)


def _moment(value: object, is_numbered: bool, *, is_millis: bool) -> datetime:
    """Return the moment that a date stands for; four digits are a year."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError("it is not a date")
    text = value.strip() if isinstance(value, str) else format(_number(value), "f")
    if _NUMBER.fullmatch(text) and (is_numbered or not _YEAR.fullmatch(text)):
        try:
            return _EPOCH + timedelta(milliseconds=int(Decimal(text) // 1))
        except OverflowError as exc:
            raise ValueError("its year is not one of four digits") from exc
    if _YEAR.fullmatch(text):
        text += "-01-01"
    elif _YEAR_MONTH.fullmatch(text):
        text += "-01"
    found = datetime.fromisoformat(text)
    moment = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    # A date of the index has milliseconds.
    return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000) if is_millis else moment


def _day(value: object, is_numbered: bool) -> str:
    moment = _moment(value, is_numbered, is_millis=False)
    if moment.time() != datetime.min.time():
        raise ValueError("it is not the start of a day")
    return moment.date().isoformat()


def _list(item: Read) -> Read:
    def read(value: object) -> list[object]:
        return [None if each is None else item(each) for each in _leaves(value)]

    return read


def _leaves(value: object) -> Iterable[object]:
    if not isinstance(value, list):
        return [value]
    return [leaf for each in value for leaf in _leaves(each)]


def _struct(fields: Mapping[str, Read]) -> Read:
    def read(value: object) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise ValueError("it is not an object")
        given = expanded(value)
        return {
            name: None if given.get(name) is None else each(given[name])
            for name, each in fields.items()
        }

    return read


_FITTING: list[tuple[Callable[[pa.DataType], bool], type]] = [
    (types.is_string, str),
    (types.is_integer, int),
    (types.is_boolean, bool),
]
_READS: list[tuple[Callable[[pa.DataType], bool], Read]] = [
    (types.is_string, _text),
    (types.is_integer, _whole),
    (types.is_decimal, _number),
    (types.is_floating, _double),
    (types.is_boolean, _boolean),
    (types.is_binary, _bytes),
]
