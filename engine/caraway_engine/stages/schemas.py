"""The protocol between the stage planner and the engine: schemas of fragments and exchanges."""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from substrait.algebra_pb2 import Rel
from substrait.type_pb2 import Type

from caraway_engine.rows.plain import plain_type


class TypeSchemas(Protocol):
    """Answers from types alone, without reading or running anything."""

    def schema(self, plan: bytes, stage: str = "") -> pa.Schema:
        """Return the schema of a fragment's rows, as they enter the exchange of a stage."""
        ...

    def text(self, plan: bytes) -> str:
        """Return a fragment's plan as readable text."""
        ...

    def leaf(self, name: str, schema: pa.Schema) -> Rel:
        """Return a relation that reads an exchange, and register it for `schema`."""
        ...

    def types(self, schema: pa.Schema) -> Sequence[Type]:
        """Return the Substrait types of the columns."""
        ...


def plain(schema: pa.Schema, stage: str = "") -> pa.Schema:
    """Return the schema with the types and names that the columns have in a stage's exchange.

    No two exchanges of a statement share a column name.
    """
    prefix = f"{stage}_c" if stage else "c"
    return pa.schema(
        [pa.field(f"{prefix}{index}", plain_type(each.type)) for index, each in enumerate(schema)]
    )
