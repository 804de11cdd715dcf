"""Joins in any order have the rows of the statement, with NOT IN too, and no new errors."""

import random
from collections.abc import Iterator
from math import inf
from operator import itemgetter

import duckdb
import pyarrow as pa
import pytest

from caraway_engine.join_orders import OrderPolicy
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import rows, session
from tests.kit.tables import parquet

COUNT = 1_000
_CHANCE = random.Random(122)


def numbers(count: int, most: int, nulls: float) -> list[int | None]:
    return [None if _CHANCE.random() < nulls else _CHANCE.randrange(most) for _ in range(count)]


TABLES = {
    "a": pa.table({"a_id": range(COUNT), "a_k": numbers(COUNT, 50, 0.1),
                   "a_x": numbers(COUNT, 700, 0.02)}),
    "b": pa.table({"b_id": range(COUNT), "b_k": numbers(COUNT, 50, 0.1),
                   "b_z": numbers(COUNT, 90, 0.1),
                   "b_s": [str(n) if n % 2 else "none" for n in range(COUNT)]}),
    "c": pa.table({"c_y": [*numbers(200, 700, 0), None], "c_k": numbers(201, 50, 0.1)}),
    "d": pa.table({"d_y": numbers(200, 700, 0), "d_k": numbers(200, 50, 0)}),
    "odd": pa.table({"o_id": [n for n in range(COUNT) if n % 2]}),
}  # fmt: skip
VIEWS = {
    "apart": "SELECT * FROM a WHERE a_x NOT IN (SELECT c_y FROM c)",
    "far_apart": "SELECT * FROM apart",
}
STATEMENTS = [
    "FROM a JOIN b ON a_id = b_id WHERE a_x NOT IN (SELECT c_y FROM c)",
    "FROM a JOIN b ON a_id = b_id WHERE a_x NOT IN (SELECT d_y FROM d)",
    "FROM a JOIN b ON a_id = b_id JOIN d ON d_k = b_z WHERE a_x NOT IN (SELECT c_y FROM c)",
    "FROM a JOIN b ON a_id = b_id JOIN d ON d_k = b_z"
    " WHERE a_x NOT IN (SELECT c_y FROM c WHERE c_y IS NOT NULL)",
    "FROM a JOIN b ON a_id = b_id JOIN d ON d_k = b_z"
    " WHERE a_x NOT IN (SELECT c_y FROM c WHERE c_k = b_k)",
    "FROM (SELECT * FROM a WHERE a_x NOT IN (SELECT c_y FROM c)) a JOIN b ON a_id = b_id",
    "FROM apart JOIN b ON a_id = b_id",
    "FROM far_apart JOIN b ON a_id = b_id JOIN d ON d_k = b_z",
    "FROM a JOIN b ON a_id = b_id WHERE NOT EXISTS (SELECT 1 FROM c WHERE c_y = a_x)",
    "FROM a JOIN b ON a_id = b_id JOIN d ON d_k = b_z"
    " WHERE NOT EXISTS (SELECT 1 FROM c WHERE c_y = a_x)",
    "FROM a JOIN b ON a_id = b_id JOIN d ON d_k = b_z WHERE a_x IN (SELECT c_y FROM c)",
    "FROM a JOIN b ON a_id = b_id WHERE NOT (a_x IN (SELECT c_y FROM c) AND b_z = 3)",
    "FROM a JOIN b ON a_id = b_id WHERE (a_x IN (SELECT c_y FROM c)) IS NULL",
    "FROM a, b, d WHERE a_k = b_k AND b_k = d_k AND a_k = d_k AND a_id < 100 AND b_id < 100",
    "FROM a JOIN b ON a_k IS NOT DISTINCT FROM b_k JOIN d ON d_k = b_k WHERE a_id < 50",
    "FROM a LEFT JOIN b ON a_id = b_id JOIN d ON d_k = a_k WHERE b_z IS NULL",
    "FROM b JOIN odd ON b_id = o_id JOIN d ON d_k = CAST(b_s AS BIGINT)",
    "FROM b JOIN odd ON b_id = o_id JOIN d ON d_k = b_z AND d_y <> CAST(b_s AS BIGINT)",
]


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("orders")
    stored = {name: parquet(folder / name, each, 2) for name, each in TABLES.items()}
    return session({**stored, **VIEWS})


@pytest.fixture(scope="module")
def judge() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, each in TABLES.items():
            connection.register(name, each)
        for name, sql in VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {sql}")
        yield connection


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_each_order_has_the_same_rows(
    of: Session, judge: duckdb.DuckDBPyConnection, statement: str
) -> None:
    sql = f"SELECT count(*) AS n {statement}"
    (expected,) = judge.execute(sql).fetchall()
    for seed in range(6):
        chance = random.Random(seed)
        reruns = of._statements.reruns
        reruns.policy = OrderPolicy(inf, -inf, inf, -inf, pick=chance.choice)
        assert await rows(of, f"{sql} -- {seed}") == [{"n": expected[0]}]


async def test_orders_are_tried_at_all(of: Session) -> None:
    sql = "EXPLAIN SELECT * FROM a JOIN b ON a_id = b_id JOIN d ON d_k = b_z"
    reruns = of._statements.reruns
    plans = set()
    for place in (0, -1):
        reruns.policy = OrderPolicy(inf, -inf, inf, -inf, pick=itemgetter(place))
        logical, *_ = await rows(of, f"{sql} -- {place}")
        plans.add(logical["plan"])
    assert len(plans) == 2
