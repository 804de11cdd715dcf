"""Avro schemas from outside, checked so that no body can be more than its bytes.

A schema can make a byte stand for a million values, or for a nesting without end; what was read
by it would not fit in memory. Such schemas describe no change events, and are refused.
"""

from dataclasses import dataclass
from typing import Any

import fastavro
import orjson
from fastavro.schema import SchemaParseException

from caraway_plugins.changes.meanings import Meaning, of_avro
from caraway_plugins.changes.target import BadChangesError

_MOST_NODES = 20_000
"""Values in one datum apart from those in its lists, as the schema has them at most."""
_PARSED = b'"__fastavro_parsed__"'


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A schema as fastavro reads by it, and what it says of the columns in `after`."""

    parsed: Any
    meaning: Meaning


def of_text(text: str) -> AvroSchema:
    """Read the text of a schema.

    Raises:
        BadChangesError: it is none, or one that is not taken.
    """
    try:
        document = orjson.loads(text)
    except ValueError as exc:
        raise BadChangesError(f"the Avro schema is not JSON: {exc}") from exc
    return of_document(document)


def of_document(document: Any) -> AvroSchema:
    """Check a schema that was read as JSON.

    Raises:
        BadChangesError: it is none, or one that is not taken.
    """
    try:
        if _PARSED in orjson.dumps(document):
            # fastavro takes such a schema as it stands.
            raise BadChangesError("the Avro schema holds a field that is no part of Avro")
        parsed = fastavro.parse_schema(document)
        if not _Walk().of(parsed).least_bytes:
            raise BadChangesError("the Avro schema describes records that take no bytes")
        return AvroSchema(parsed, of_avro(parsed).of("after"))
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
    """Measures types; named ones are measured where they are defined."""

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
            size = _Size(1, schema["size"] if kind == "fixed" else 1)
            self._known[schema["name"]] = size
            return size
        return self._named(kind) if isinstance(kind, str) else self.of(kind)

    def _record(self, schema: Any) -> _Size:
        name = schema["name"]
        self._known[name] = None
        inner = [self.of(each["type"]) for each in schema["fields"]]
        size = _Size(1 + sum(each.nodes for each in inner), sum(each.least_bytes for each in inner))
        self._known[name] = size
        return size

    def _named(self, name: str) -> _Size:
        if name == "null":
            return _Size(1, 0)
        size = self._known.get(name, _WORD)
        if size is None:
            raise BadChangesError(f"the Avro schema holds '{name:.100}' in itself")
        return size
