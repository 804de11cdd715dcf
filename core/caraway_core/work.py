"""The work of a task: a fragment of a plan, or a statement for a database.

All are frozen values that can be pickled: a scheduler plans them, and executors run them.
"""

from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.tables import RemoteTable


@dataclass(frozen=True, slots=True)
class SubstraitFragment:
    """A Substrait plan for the engine; it names tables of the catalog, and inputs."""

    plan: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """A statement for the database that keeps `table`, and the columns of its answer.

    `is_reducing` is true if it does more than to read and filter. The statement has no secrets:
    those are in the table, which does not show them.
    """

    table: RemoteTable
    sql: str
    schema: pa.Schema = field(repr=False)
    is_reducing: bool = False


Work = SubstraitFragment | SourceQuery
