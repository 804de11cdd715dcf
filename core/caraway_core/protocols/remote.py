"""Reading tables that a database keeps: the engine generates the statement, a plug-in sends it."""

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from caraway_core.tables import RemoteTable


class RemoteRows(Protocol):
    """Rows of a statement that runs in a database. Its methods block; one thread reads."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the types of the requested schema.

        Raises:
            QueryError: the database cannot be reached, refuses the statement or fails, or a value
                does not fit its column.
        """
        ...

    def close(self) -> None:
        """Stop the statement; any thread may call it, also while another one reads."""
        ...


class RemoteReader(Protocol):
    """Sends statements to one kind of database. Its methods block; any thread may call them."""

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> RemoteRows:
        """Return the rows of a statement that runs where the table is, from the first read on.

        Its columns become those of the schema, in order. Never blocks.
        """
        ...
