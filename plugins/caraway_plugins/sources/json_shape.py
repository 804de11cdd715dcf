"""Infers the columns of a JSON file: an array of objects, or consecutive objects."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_plugins.sources import schemas
from caraway_plugins.sources.samples import FileSample


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class JsonShape:
    """The columns of a JSON file, and whether it is an array."""

    schema: pa.Schema
    is_array: bool


def infer(sample: FileSample, form: str, max_records: int | None, title: str) -> JsonShape:
    """Return the columns of the objects; the type is `null` where no value was seen.

    Raises:
        DatasetError: the text is not JSON, has values other than objects, or has a column with
            types that the reader cannot combine, such as numbers and strings.
    """
    if sample.has_mark:
        raise DatasetError(
            "invalid", f"'{title}' begins with a byte order mark, which JSON has not; remove it"
        )
    try:
        return _inferred(sample, form, max_records, title)
    except UnicodeEncodeError as exc:
        raise DatasetError(
            "invalid", f"'{title}' has an escape that stands for half of a Unicode character"
        ) from exc
    except RecursionError as exc:
        raise DatasetError("invalid", f"'{title}' is nested too deeply") from exc


def _inferred(sample: FileSample, form: str, max_records: int | None, title: str) -> JsonShape:
    is_array = form == "array" or (form == "auto" and sample.text.lstrip()[:1] == "[")
    records = _records(sample, is_array, title)
    return JsonShape(columns_of(islice(records, max_records), title), is_array)


def columns_of(records: Iterable[object], title: str) -> pa.Schema:
    """Return the columns of objects; the type is `null` where no value was seen.

    Raises:
        DatasetError: one is not an object, or a column has types that cannot be combined.
    """
    fields: dict[str, pa.DataType] = {}
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise DatasetError("invalid", f"record {number} of '{title}' is not a JSON object")
        for name, value in record.items():
            fields[name] = _united(
                fields.get(name, pa.null()), _type(value, name, title), name, title
            )
    return pa.schema([pa.field(*pair) for pair in fields.items()])


def rows(text: str, title: str) -> list[Any]:
    """Parse a whole JSON array, or consecutive objects."""
    return list(_records(FileSample(text, True), text.lstrip()[:1] == "[", title))


def _records(sample: FileSample, is_array: bool, title: str) -> Iterator[object]:
    text, position = sample.text, 0
    if is_array:
        position = _skip(text, 0, _BLANK)
        if text[position : position + 1] != "[":
            raise DatasetError(
                "invalid", f"'{title}' does not start with '[' and is not a JSON array"
            )
        position += 1
    while (position := _skip(text, position, _BLANK + ("," if is_array else ""))) < len(text):
        if is_array and text[position] == "]":
            return
        try:
            record, position = _DECODER.raw_decode(text, position)
        except ValueError as exc:
            if not sample.is_whole:  # the sample ends within this record
                return
            line = text.count("\n", 0, position) + 1
            raise DatasetError("invalid", f"'{title}' is not JSON at line {line}") from exc
        yield record
    if is_array and sample.is_whole:
        raise DatasetError("invalid", f"the JSON array in '{title}' is truncated: it has no end")


def _skip(text: str, position: int, blank: str) -> int:
    while position < len(text) and text[position] in blank:
        position += 1
    return position


def _type(value: Any, name: str, title: str) -> pa.DataType:
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if -(2**63) <= value < 2**63 else pa.float64()
        case float():
            return pa.float64()
        case str():
            return pa.string()
        case list():
            item = pa.null()
            for each in value:
                item = _united(item, _type(each, name, title), name, title)
            return pa.list_(item)
        case _:
            inner = [
                pa.field(key, _type(each, f"{name}.{key}", title)) for key, each in value.items()
            ]
            # Neither Arrow files nor SQL support a struct without fields.
            return pa.struct(inner) if inner else pa.null()


def _united(left: pa.DataType, right: pa.DataType, name: str, title: str) -> pa.DataType:
    united = schemas.widened(left, right)
    if united is None:
        raise DatasetError(
            "schema",
            f"column '{name}' of '{title}' holds both {left} and {right} values; use one type",
        )
    return united
