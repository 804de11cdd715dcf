"""Derives columns from `key=value` folders (Hive partitioning)."""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from urllib.parse import unquote

import pyarrow as pa

from caraway_core.errors import DatasetError

NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"

_KEY_VALUE = re.compile(r"^([^=]+)=(.*)$")
_INTEGER = re.compile(r"-?[0-9]{1,18}")

Values = tuple[tuple[str, str | None], ...]


def values_of(relative: str) -> Values:
    """Parse the keys and values of the folders in a path.

    Raises:
        DatasetError: a key occurs twice.
    """
    found = (_KEY_VALUE.match(part) for part in relative.split("/")[:-1])
    values = tuple((pair[1], _value(pair[2])) for pair in found if pair)
    keys = [key for key, _ in values]
    if len(set(keys)) < len(keys):
        raise DatasetError(
            "schema",
            f"'{relative}' has two partition folders of one name; rename one, or set "
            "hive_partitioning_enabled: false",
        )
    return values


def leads(relative: str) -> bool:
    """Return whether all `key=value` folders come first; the engine reads only those."""
    folders = [bool(_KEY_VALUE.match(part)) for part in relative.split("/")[:-1]]
    return folders == sorted(folders, reverse=True)


def columns(files: Iterable[Values], declared: Sequence[pa.Field]) -> tuple[pa.Field, ...]:
    """Return the partition columns of a table; a declared type overrides the inferred type."""
    values: dict[str, list[str | None]] = {}
    for pairs in files:
        for key, value in pairs:
            values.setdefault(key, []).append(value)
    by_name = {field.name: field.type for field in declared}
    return tuple(
        pa.field(key, by_name.get(key) or _type([each for each in texts if each is not None]))
        for key, texts in values.items()
    )


def _value(text: str) -> str | None:
    return None if text == NULL_VALUE else unquote(text)


def _type(texts: list[str]) -> pa.DataType:
    if texts and all(map(_INTEGER.fullmatch, texts)):
        return pa.int64()
    return pa.date32() if texts and all(map(_is_date, texts)) else pa.string()


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
