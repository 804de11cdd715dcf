"""Values that are bound in statements that write, and have another type than their column."""

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

DAY, PRICE = datetime.date(2024, 2, 29), decimal.Decimal("1.50")
COLUMNS = {
    "small": pa.array([0], pa.int16()),
    "price": pa.array([decimal.Decimal(0)], pa.decimal128(12, 2)),
    "ratio": pa.array([0.0], pa.float32()),
    "day": pa.array([None], pa.date32()),
    "title": pa.array([None], pa.string()),
    "at": pa.array([None], pa.timestamp("us")),
}
VALUES: list[tuple[str, Any, Any]] = [
    ("small", 7, 7),
    ("small", "7", 7),
    ("small", ArrowValue.from_array(pa.array([7], pa.uint64())), 7),
    ("small", None, None),
    ("price", "1.5", PRICE),
    ("price", 1.5, PRICE),
    ("price", ArrowValue.from_array(pa.array([PRICE])), PRICE),
    ("ratio", 0.5, 0.5),
    ("day", "2024-02-29", DAY),
    ("title", 7, "7"),
    ("at", "2024-02-29T01:02:03", datetime.datetime(2024, 2, 29, 1, 2, 3)),
]


async def written(sql: str, **parameters: Any) -> Session:
    made = session({"t": memory(**COLUMNS)})
    await rows(made, sql, parameters=parameters, writable=frozenset({TableName("t")}))
    return made


@pytest.mark.parametrize(("column", "value", "stored"), VALUES)
async def test_inserted_value_takes_the_type_of_its_column(
    column: str, value: Any, stored: Any
) -> None:
    made = await written(f"INSERT INTO t ({column}) VALUES (:value), (:value), (NULL)", value=value)
    sql = f"SELECT {column} AS v, arrow_typeof({column}) AS kind FROM t"
    found = await rows(made, sql)
    assert [row["v"] for row in found].count(stored) >= 2
    assert len({row["kind"] for row in found}) == 1
    if stored is not None:
        assert len(await rows(made, f"{sql} WHERE {column} = $1", parameters={"1": value})) == 2


@pytest.mark.parametrize(("column", "value", "stored"), VALUES)
async def test_updated_value_takes_the_type_of_its_column(
    column: str, value: Any, stored: Any
) -> None:
    made = await written(f"UPDATE t SET {column} = $1 WHERE small = $2", **{"1": value, "2": 0})
    assert await rows(made, f"SELECT {column} AS v FROM t") == [{"v": stored}]


async def test_value_that_does_not_fit_is_refused() -> None:
    for sql in ("INSERT INTO t (small) VALUES ($1)", "UPDATE t SET small = $1"):
        for value, said in ((70_000, "70000"), ("x", "'x'")):
            with pytest.raises(QueryError, match=said):
                await written(sql, **{"1": value})
