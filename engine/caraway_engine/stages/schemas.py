"""What the planner asks the engine: the schema of a fragment, and how to read an exchange."""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from substrait.algebra_pb2 import Rel
from substrait.type_pb2 import Type

from caraway_engine.rows.plain import plain_type


class TypeSchemas(Protocol):
    """Answers from the types alone; nothing is read or run."""

    def schema(self, plan: bytes, stage: str = "") -> pa.Schema:
        """Return the schema of a fragment's rows, as they enter the exchange of a stage."""
        ...

    def text(self, plan: bytes) -> str:
        """Word a fragment for a reader."""
        ...

    def leaf(self, name: str, schema: pa.Schema) -> Rel:
        """Make the relation that reads an exchange, and let `schema` know of it."""
        ...

    def types(self, schema: pa.Schema) -> Sequence[Type]:
        """Name the types of the columns in the plan's language."""
        ...


def plain(schema: pa.Schema, stage: str = "") -> pa.Schema:
    """Give the columns the types and names that they have in the exchange of a stage.

    No two exchanges of a statement have a column of the same name.
    """
    prefix = f"{stage}_c" if stage else "c"
    return pa.schema(
        [pa.field(f"{prefix}{index}", plain_type(each.type)) for index, each in enumerate(schema)]
    )
