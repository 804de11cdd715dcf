"""Reads columns of documents, page by page.

Most columns have values of one kind. These are taken all at once; any other value is looked at by
itself.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from itertools import chain
from types import NoneType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import DatasetError
from caraway_plugins.sources.documents.table import ColumnValues
from caraway_plugins.sources.opensearch import values
from caraway_plugins.sources.opensearch.values import Read

types = pa.types
_DAY = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_MOMENTS = {
    rf"^{_DAY}$": None,
    rf"^{_DAY}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{3}})?Z$": "UTC",
}
"""Forms of dates with the zone that Arrow reads them in."""
_DOUBLES = frozenset({float, Decimal, NoneType})


class SourceReader:
    """Reads some columns of documents.

    The dates at `numbered` paths are always numbers. Columns that are `searched` take only values
    that are in the index as they are here; other texts have JSON for lists and objects.
    """

    def __init__(
        self, schema: Iterable[pa.Field], numbered: Set[str], searched: Set[str], title: str
    ) -> None:
        self._columns = [
            _Column(
                each,
                values.plain_text
                if each.name in searched and types.is_string(each.type)
                else values.read_of(each.type, each.name, numbered),
                is_numbered=each.name in numbered,
                title=title,
            )
            for each in schema
        ]

    def columns(self, sources: Iterable[Mapping[str, Any]]) -> dict[str, ColumnValues]:
        """Return the values of documents by the names of columns.

        Raises:
            DatasetError: a value does not fit its column.
        """
        expanded = [values.expanded(each) for each in sources]
        return {each.name: each.values(expanded) for each in self._columns}


class _Column:
    def __init__(self, field: pa.Field, read: Read, *, is_numbered: bool, title: str) -> None:
        self.name: str = field.name
        self._type = field.type
        self._steps = self.name.split(".")
        self._read = read
        self._is_numbered = is_numbered
        self._title = title
        self._fitting = values.fitting(self._type)

    def values(self, sources: Sequence[Mapping[str, Any]]) -> ColumnValues:
        if len(self._steps) == 1:
            given = [each.get(self.name) for each in sources]
        else:
            given = [values.at(each, self._steps) for each in sources]
        found = self._all(given, set(map(type, given)))
        return [self._value(each) for each in given] if found is None else found

    def _all(self, given: list[Any], kinds: set[type]) -> ColumnValues | None:
        """Return all values of a page; None if one of them has to be looked at."""
        if kinds <= {self._fitting, NoneType}:
            return given
        if types.is_float64(self._type) and kinds <= _DOUBLES:
            return [None if each is None else float(each) for each in given]
        if types.is_list(self._type) and kinds <= {list, NoneType}:
            fitting = values.fitting(self._type.value_type)
            items = chain.from_iterable(filter(None, given))
            return given if {fitting, NoneType}.issuperset(map(type, items)) else None
        if types.is_timestamp(self._type) and kinds <= {str, NoneType} and not self._is_numbered:
            return _moments(given, self._type)
        return None

    def _value(self, value: object) -> Any:
        try:
            is_done = value is None or type(value) is self._fitting
            return value if is_done else self._read(value)
        except (ValueError, TypeError, ArithmeticError) as exc:
            said = f" ({exc})" if type(exc) is ValueError else ""
            raise DatasetError(
                "schema",
                f"'{self._title}' has a value in column '{self.name}' that is not one of its "
                f"type{said}; declare a type that fits all values under `columns`, for "
                "example text",
            ) from exc


def _moments(given: list[str | None], type_: pa.TimestampType) -> pa.Array | None:
    """Return moments that all are days, or all have milliseconds at most and the sign of UTC."""
    texts = pa.array(given, pa.string())
    for form, zone in _MOMENTS.items():
        if pc.all(pc.match_substring_regex(texts, form)).as_py() is not False:
            try:
                return texts.cast(pa.timestamp(type_.unit, zone)).cast(type_)
            except pa.ArrowInvalid:
                return None
    return None
