"""Plans fragments: Substrait plans over catalog tables and over exchanged rows."""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.catalog import SchemaProvider, Table
from datafusion.substrait import Consumer, Serde

from caraway_core.protocols.fleet import TaskTable
from caraway_core.statements import GivenRows
from caraway_engine.rows import plain
from caraway_engine.rows.held import SCANNED_ROWS
from caraway_engine.rows.null_structs import with_null_fields
from caraway_engine.stages.inputs import INPUT_PREFIX, INPUT_SCHEMA

# A name as Substrait encodes it: a tag, a length, the text. Leaves literals that contain the prefix
# unchanged.
_PLACEHOLDER = re.compile(
    b"(?s)(\n%c%s\n.)%s" % (len(INPUT_SCHEMA), INPUT_SCHEMA.encode(), INPUT_PREFIX.encode())
)


class Inputs(SchemaProvider):  # type: ignore[misc] # datafusion is untyped to us
    """The schema that holds the inputs of fragments, each under an unguessable token.

    Inputs are not listed, so that statements cannot see the inputs of other queries. A dataset's
    schema may have the same name; its tables are listed.
    """

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}
        self._passing: dict[str, Table] = {}
        self._scratch = SessionContext()

    @property
    def owner_name(self) -> str | None:
        """Return None: the schema has no owner."""
        return None

    @property
    def table_names(self) -> list[str]:
        """The names of the dataset tables in this schema, without inputs."""
        return sorted(self._tables)

    def table(self, name: str) -> Table | None:
        """Return a dataset table or an input, or None."""
        return self._tables.get(name) or self._passing.get(name)

    def table_exist(self, name: str) -> bool:
        """Return whether there is a dataset table or an input of this name."""
        return name in self._tables or name in self._passing

    def register_table(self, name: str, table: Table) -> None:
        """Add the table of a dataset."""
        self._tables[name] = table

    @contextmanager
    def passing(self, inputs: Sequence[TaskTable], tables: Mapping[str, Table]) -> Iterator[str]:
        """Register inputs and tables while a plan is made; yield the token for the prefix."""
        token = secrets.token_hex(len(INPUT_PREFIX) // 2)
        names = []
        try:
            for name, table in tables.items():
                self._passing[token + name] = table
                names.append(token + name)
            for each in inputs:
                name = each.name.removeprefix(INPUT_PREFIX)
                self._passing[token + name] = self._made(token + name, each)
                names.append(token + name)
            yield token
        finally:
            for name in names:
                del self._passing[name]

    def empty(self, schema: pa.Schema) -> Table:
        """Return a table without rows, to be passed while plans are made."""
        return self._made(secrets.token_hex(8), TaskTable("", schema, ()))

    @contextmanager
    def holding(self, given: GivenRows | None) -> Iterator[None]:
        """Show the rows that came with a statement for as long as it is planned."""
        if given is None:
            yield
            return
        rows = given.rows
        name = given.name.rpartition(".")[2]
        self._passing[name] = self._made(name, TaskTable(name, rows.schema, (rows,)))
        try:
            yield
        finally:
            self._passing.pop(name, None)

    def _made(self, name: str, rows: TaskTable) -> Table:
        self._scratch.register_record_batches(name, [batches(rows)])
        try:
            return self._scratch.catalog().schema().table(name)
        finally:
            self._scratch.deregister_table(name)


def plan(
    context: SessionContext,
    fragment: bytes,
    inputs: Inputs,
    rows: Sequence[TaskTable],
    tables: Mapping[str, Table] = MappingProxyType({}),
) -> DataFrame:
    """Plan a fragment. The plan keeps its inputs, which are removed from the schema again.

    `tables` are read in the same way as inputs, by name.
    """
    with inputs.passing(rows, tables) as token:
        named = _PLACEHOLDER.sub(rb"\g<1>" + token.encode(), fragment)
        logical = Consumer.from_substrait_plan(context, Serde.deserialize_bytes(named))
        return context.create_dataframe_from_logical_plan(logical)


def batches(rows: TaskTable) -> list[pa.RecordBatch]:
    """Return the rows of an input in batches of its schema; at least one."""
    schema = rows.schema
    made = []
    for table in rows.tables:
        plain.check_same(table.schema, schema)
        for batch in table.to_batches(max_chunksize=SCANNED_ROWS):
            if batch.num_rows:
                renamed = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                made.append(with_null_fields(renamed))
    return made or [pa.RecordBatch.from_pylist([], schema=schema)]
