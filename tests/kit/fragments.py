"""Makes plan fragments from SQL, so that tests can be written in SQL."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from datafusion import SessionContext
from datafusion.catalog import Schema
from datafusion.substrait import Serde
from substrait.plan_pb2 import Plan

from caraway_core.ids import CatalogVersion, new_query_id
from caraway_core.protocols.fleet import Share, Split, Task, TaskTable
from caraway_core.protocols.storing import StoreOrder
from caraway_core.work import SubstraitFragment
from caraway_engine.stages.inputs import INPUT_PREFIX, INPUT_SCHEMA


def task(
    sql: str,
    tables: Mapping[str, pa.Schema],
    *,
    version: int = 1,
    origin: str = "here",
    shares: Sequence[Share] = (),
    split: Split | None = None,
    schema: pa.Schema | None = None,
    store: StoreOrder | None = None,
    in_background: bool = False,
) -> Task:
    """Return a task for a statement; `$name` refers to the input with that name."""
    context = _context(tables)
    sql = _with_inputs(sql, tables)
    given = pa.schema(context.sql(sql).schema())
    names = [f"c{index}" for index in range(len(given))]
    named = pa.schema([field.with_name(name) for field, name in zip(given, names, strict=True)])
    return Task(
        new_query_id(),
        "stage",
        origin,
        CatalogVersion(version),
        SubstraitFragment(fragment(sql, context)),
        schema or named,
        tuple(shares),
        split,
        store,
        in_background,
    )


def fragment(sql: str, context: SessionContext) -> bytes:
    plan = Plan()
    plan.ParseFromString(Serde.serialize_bytes(sql, context))
    bare = Plan()
    bare.CopyFrom(plan)
    bare.relations[0].rel.CopyFrom(plan.relations[0].root.input)
    return bytes(bare.SerializeToString())


def rows_of(name: str, *tables: pa.Table) -> TaskTable:
    return TaskTable(INPUT_PREFIX + name, tables[0].schema, tables)


def _with_inputs(sql: str, tables: Mapping[str, pa.Schema]) -> str:
    for name in tables:
        if name.startswith("$"):
            sql = sql.replace(name, f'{INPUT_SCHEMA}."{INPUT_PREFIX}{name[1:]}"')
    return sql


def _context(tables: Mapping[str, pa.Schema]) -> SessionContext:
    context = SessionContext()
    schemas = context.catalog().schema_names()
    for name in ({INPUT_SCHEMA} | {each.split(".")[0] for each in tables if "." in each}) - schemas:
        context.catalog().register_schema(name, Schema.memory_schema())
    for name, schema in tables.items():
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        quoted = f'{INPUT_SCHEMA}."{INPUT_PREFIX}{name[1:]}"' if name.startswith("$") else name
        context.register_record_batches(quoted, [[empty]])
    return context
