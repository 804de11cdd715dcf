"""The work of a task: a fragment of a plan, a statement for a database, or a batch call.

All are frozen values that can be pickled: a scheduler plans them, and executors run them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.tables import RemoteTable

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Makes record batches of record batches; it may read all of them before it yields one."""


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


class BatchCall:
    """A call of a function on all rows of a task's inputs. A frozen dataclass extends this.

    It crosses to executors as a value, so it names what it needs instead of holding it: a model,
    an index, the arguments of a search.
    """

    __slots__ = ()

    def build(self) -> BatchFunction:
        """Return the function. It is called once for each task, in a thread that may block.

        Raises:
            QueryError: the function cannot be made here.
        """
        raise NotImplementedError


Work = SubstraitFragment | SourceQuery | BatchCall
