"""Tables of Iceberg that are compared with what PyIceberg reads."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import IdentityTransform

from caraway_core.errors import DatasetError
from caraway_core.tables import TableSpec
from tests.kit import iceberg_tables as tables
from tests.kit.engine import rows, session

ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int32()),
        "name": ["a", "b", None, "d", "e", "f", "g", "h"],
        "ratio": pa.array([each / 4 for each in range(8)], pa.float32()),
        "day": pa.array([date(2020, 1, 1 + each % 3) for each in range(8)]),
    }
)
MORE = pa.table(
    {
        "id": pa.array([8, 9], pa.int32()),
        "name": ["i", "j"],
        "ratio": pa.array([8.5, None], pa.float32()),
        "day": [date(2020, 1, 9)] * 2,
    }
)


BY_DAY = "day", IdentityTransform()


async def read_rows(table: TableSpec, sql: str = "SELECT * FROM t") -> list[dict[str, Any]]:
    return await rows(session({"t": table}), sql)


async def assert_as_judged(folder: Path) -> TableSpec:
    """Compare all rows with those that PyIceberg reads; return the table."""
    table = tables.resolved(folder)
    expected = tables.judge(folder / "t")
    assert sorted(map(repr, await read_rows(table))) == sorted(map(repr, expected.to_pylist()))
    assert table.schema.names == expected.schema.names
    return table


def assert_refused(folder: Path, type_: str, said: str, **params: str) -> DatasetError:
    with pytest.raises(DatasetError, match=said) as caught:
        tables.resolved(folder, **params)
    assert caught.value.type == type_
    return caught.value
