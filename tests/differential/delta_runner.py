"""A single node whose tables are Delta Lake tables with the same rows."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import TableSpec
from caraway_engine.rows.plain import plain_schema
from caraway_plugins.sources.delta import DeltaSource
from tests.differential.datasets import Dataset
from tests.differential.runners import Distributed, SingleNode, installed, single_node

_PARTS = 3


@asynccontextmanager
async def in_delta(dataset: Dataset) -> AsyncIterator[Distributed]:
    """Write every table in several versions, of which the last one is read."""
    tables = dict(dataset.snapshot().tables)
    with tempfile.TemporaryDirectory() as folder:
        async with single_node(dataset) as node:
            for name in dataset.tables:
                rows = await node.execute(f'SELECT * FROM "{name}"')
                names = [each.lower() for each in rows.schema.names]
                if all(map(_is_kept, rows.schema.types)) and len(set(names)) == len(names):
                    tables[TableName(name)] = written(Path(folder) / name, rows)
        with installed(2, replace(dataset.snapshot(), tables=tables)) as executor:
            yield SingleNode(executor)


def written(folder: Path, rows: pa.Table) -> TableSpec:
    """Write rows to a Delta table, and resolve it."""
    plain = rows.cast(plain_schema(rows.schema))
    size = -(-plain.num_rows // _PARTS) or 1
    for start in range(0, max(plain.num_rows, 1), size):
        deltalake.write_deltalake(folder, plain.slice(start, size), mode="append")
    return resolved(folder)


def resolved(folder: Path, **params: str) -> TableSpec:
    """Return a Delta table as the source of a dataset does."""
    request = SourceRequest(
        TableName(folder.name), "delta", str(folder), params, (), "read", folder, folder
    )
    return DeltaSource().resolve(request)


def _is_kept(type_: pa.DataType) -> bool:
    """Return whether Delta Lake supports the type.

    It has no unsigned integers, its timestamps have microseconds, and names must differ by more
    than case.
    """
    if pa.types.is_timestamp(type_):
        return bool(type_.unit == "us")
    is_odd = (
        pa.types.is_unsigned_integer(type_)
        or pa.types.is_float16(type_)
        or pa.types.is_time(type_)
        or pa.types.is_duration(type_)
        or pa.types.is_interval(type_)
        or pa.types.is_null(type_)
        or pa.types.is_decimal256(type_)
        or pa.types.is_dictionary(type_)
    )
    return not is_odd and all(_is_kept(type_.field(n).type) for n in range(type_.num_fields))
