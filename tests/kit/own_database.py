"""A database that is the engine itself: it answers the statements that are sent to it."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
from datafusion import SessionContext

from caraway_core.tables import RemoteColumn, RemoteSplit, RemoteTable
from caraway_engine.remote import words
from caraway_plugins.sources.postgres.dialect import POSTGRES

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ('o d"d', pa.int64())])
ROWS = pa.table(
    {
        "id": pa.array([*range(-6, 7), None, None], pa.int64()),
        "n": pa.array([number % 3 if number % 4 else None for number in range(15)], pa.int64()),
        'o d"d': pa.array(range(15), pa.int64()),
    },
    schema=SCHEMA,
)


words.use("itself", POSTGRES)
_CAST = re.compile(r'\(("(?:[^"]|"")*")\)::int8')


@dataclass
class Database:
    """Answers statements with an engine of its own, as a database would."""

    rows: pa.Table = field(default_factory=lambda: ROWS)
    sent: list[str] = field(default_factory=list)

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "Answer":
        self.sent.append(sql)
        # A thread of the engine cannot wait for the engine.
        with ThreadPoolExecutor(1) as apart:
            return Answer(apart.submit(self._answered, sql, schema).result())

    def _answered(self, sql: str, schema: pa.Schema) -> list[pa.RecordBatch]:
        context = SessionContext()
        context.sql('CREATE SCHEMA "s x"').collect()
        context.from_arrow(self.rows, name="loaded")
        made = context.catalog().schema().table("loaded")
        context.catalog().schema("s x").register_table('t"t', made)
        # The engine takes no order by a column that is also selected with a cast; all are int8.
        found = context.sql(_CAST.sub(r"\1", sql)).to_arrow_table()
        batches: list[pa.RecordBatch] = found.rename_columns(schema.names).cast(schema).to_batches()
        return batches


@dataclass
class Answer:
    batches: list[pa.RecordBatch]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.batches)

    def close(self) -> None: ...


def remote(splits: Sequence[RemoteSplit] = ()) -> RemoteTable:
    columns = tuple(RemoteColumn(each.name, each.type, True) for each in SCHEMA)
    return RemoteTable(SCHEMA, "itself", ("s x", 't"t'), columns, {}, 0, tuple(splits))
