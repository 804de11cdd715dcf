"""The mapping of an index: the columns of its documents."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from caraway_plugins.sources import schemas

Field = Mapping[str, Any]
"""The mapping of one field."""
types = pa.types
MOMENT = pa.timestamp("us", "UTC")
_TYPES: Mapping[str, pa.DataType] = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "unsigned_long": pa.decimal128(20, 0),
    **dict.fromkeys(("double", "float", "half_float", "scaled_float"), pa.float64()),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    **dict.fromkeys(("knn_vector", "dense_vector"), pa.list_(pa.float32())),
}
_TEXTS = frozenset(
    "keyword text wildcard constant_keyword match_only_text search_as_you_type ip version date "
    "date_nanos".split()
)
"""Types whose values are texts. Fields of other types are JSON as text."""
_FORMATS = frozenset(
    {
        *("strict_date_optional_time", "date_optional_time", "strict_date_optional_time_nanos"),
        *("strict_date", "date", "strict_date_time", "date_time", "epoch_millis"),
        *("strict_date_time_no_millis", "date_time_no_millis"),
        *("yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss"),
    }
)
_WITHOUT_VALUES = frozenset({"alias", "token_count"})


@dataclass(frozen=True, slots=True)
class IndexMapping:
    """The fields of an index, and patterns of those that its documents do not keep."""

    properties: Mapping[str, Field]
    left_out: Sequence[str] = ()

    def columns(self, lists: Set[str]) -> pa.Schema:
        """Return the columns. The fields in `lists` have several values."""
        return pa.schema(list(self._columns(self.properties, "", lists)))

    @property
    def fields(self) -> Mapping[str, Field]:
        """All fields by their paths, without those of nested documents."""
        return dict(_flat(self.properties, ""))

    @property
    def numbered(self) -> frozenset[str]:
        """The paths of dates that are always numbers."""
        paths = self.fields.items()
        return frozenset(path for path, each in paths if _formats(each) == {"epoch_millis"})

    def _columns(
        self, properties: Mapping[str, Field], prefix: str, lists: Set[str]
    ) -> Iterator[pa.Field]:
        for name, each in properties.items():
            path, kind = f"{prefix}{name}", each.get("type", "object")
            is_out = any(fnmatchcase(path, text.removesuffix(".*")) for text in self.left_out)
            if is_out or kind in _WITHOUT_VALUES or "script" in each:
                continue
            type_ = self._type(each, path, lists)
            is_text = types.is_string(type_) and kind not in _TEXTS
            if (path in lists or kind == "nested") and not is_text and not types.is_list(type_):
                type_ = pa.list_(type_)
            yield pa.field(name, type_)

    def _type(self, each: Field, path: str, lists: Set[str]) -> pa.DataType:
        if "properties" in each and each.get("enabled", True) is True:
            inner = list(self._columns(each["properties"], f"{path}.", lists))
            # Neither Arrow files nor SQL support a struct without fields.
            return pa.struct(inner) if inner else pa.string()
        if each.get("type") == "date" and _formats(each) <= _FORMATS:
            return MOMENT
        return _TYPES.get(str(each.get("type")), pa.string())


def united(found: Sequence[pa.Schema]) -> pa.Schema:
    """Return the columns of several indexes; where their types disagree, text."""
    fields: dict[str, pa.DataType] = {}
    for schema in found:
        for each in schema:
            own = fields.get(each.name, each.type)
            fields[each.name] = schemas.widened(own, each.type) or pa.string()
    return pa.schema(list(fields.items()))


def _flat(properties: Mapping[str, Field], prefix: str) -> Iterator[tuple[str, Field]]:
    for name, each in properties.items():
        yield f"{prefix}{name}", each
        if each.get("type") != "nested":
            yield from _flat(each.get("properties") or {}, f"{prefix}{name}.")


def _formats(each: Field) -> frozenset[str]:
    written = str(each.get("format") or "strict_date_optional_time||epoch_millis")
    return frozenset(written.split("||"))
