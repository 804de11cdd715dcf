"""Parses Avro schemas from clients, and rejects those that let a small body use much memory.

A schema can make one byte stand for a million values or for unlimited nesting, so that the decoded
data exceeds memory. No schema of change events needs this.
"""

from dataclasses import dataclass
from typing import Any

import fastavro
import orjson
from fastavro.schema import SchemaParseException

from caraway_plugins.changes.meanings import Meaning, of_avro
from caraway_plugins.changes.target import BadChangesError

_MOST_NODES = 20_000
"""Most values in one datum, without the items of its lists."""
_MOST_EMPTY = 8
"""Most values of one record that take no bytes: one byte beside them would stand for all."""
_PARSED = b'"__fastavro_parsed__"'


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A schema parsed by fastavro, and the semantic types of its values.

    `meaning` has those of the columns in `after`, for events, and `own` those of the record itself.
    """

    parsed: object
    meaning: Meaning
    own: Meaning


def of_text(text: str) -> AvroSchema:
    """Parse the text of a schema.

    Raises:
        BadChangesError: the text is not a schema, or the schema is rejected.
    """
    try:
        document = orjson.loads(text)
    except ValueError as exc:
        raise BadChangesError(f"the Avro schema is not JSON: {exc}") from exc
    return of_document(document)


def of_document(document: object) -> AvroSchema:
    """Check a schema that was parsed from JSON.

    Raises:
        BadChangesError: the document is not a schema, or the schema is rejected.
    """
    try:
        if _PARSED in orjson.dumps(document):
            # fastavro does not parse a schema that has this field.
            raise BadChangesError("the Avro schema has a field that is not part of Avro")
        parsed = fastavro.parse_schema(document)
        if not _Walk().of(parsed).least_bytes:
            raise BadChangesError("the Avro schema describes records that take no bytes")
        own = of_avro(parsed)
        return AvroSchema(parsed, own.meaning_of("after"), own)
    except RecursionError as exc:
        raise BadChangesError("the Avro schema is nested too deeply") from exc
    except BadChangesError:
        raise
    except (SchemaParseException, AttributeError, KeyError, TypeError, ValueError) as exc:
        reason = str(exc) if isinstance(exc, SchemaParseException) else "it is malformed"
        raise BadChangesError(f"the Avro schema cannot be used: {reason:.300}") from exc


@dataclass(frozen=True, slots=True)
class _Size:
    nodes: int
    least_bytes: int


_WORD = _Size(1, 1)


class _Walk:
    """Computes sizes of types; a named type is measured at its definition."""

    def __init__(self) -> None:
        self._known: dict[str, _Size | None] = {}

    def of(self, schema: Any) -> _Size:
        size = self._of(schema)
        if size.nodes > _MOST_NODES:
            raise BadChangesError(f"the Avro schema has more than {_MOST_NODES} fields")
        return size

    def _of(self, schema: Any) -> _Size:
        if isinstance(schema, list):
            return _Size(1 + max((self.of(each).nodes for each in schema), default=0), 1)
        if isinstance(schema, str):
            return self._named(schema)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema)
        if kind in ("array", "map"):
            inner = self.of(schema["items" if kind == "array" else "values"])
            if kind == "array" and not inner.least_bytes:
                raise BadChangesError("the Avro schema has a list whose items take no bytes")
            return _Size(1 + inner.nodes, 1)
        if kind in ("fixed", "enum"):
            size = _Size(1, _fixed_bytes(schema) if kind == "fixed" else 1)
            self._known[schema["name"]] = size
            return size
        return self._named(kind) if isinstance(kind, str) else self.of(kind)

    def _record(self, schema: Any) -> _Size:
        name = schema["name"]
        self._known[name] = None
        inner = [self.of(each["type"]) for each in schema["fields"]]
        if sum(each.nodes for each in inner if not each.least_bytes) > _MOST_EMPTY:
            raise BadChangesError(
                f"the Avro schema has a record with more than {_MOST_EMPTY} fields that take no "
                "bytes"
            )
        size = _Size(1 + sum(each.nodes for each in inner), sum(each.least_bytes for each in inner))
        self._known[name] = size
        return size

    def _named(self, name: str) -> _Size:
        if name == "null":
            return _Size(1, 0)
        size = self._known.get(name, _WORD)
        if size is None:
            raise BadChangesError(f"the Avro schema is recursive: '{name:.100}' contains itself")
        return size


def _fixed_bytes(schema: Any) -> int:
    size = schema["size"]
    if type(size) is not int or size < 0:
        raise BadChangesError("the Avro schema has a fixed type whose size is no number of bytes")
    return size
