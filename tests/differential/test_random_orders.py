"""Random joins have DuckDB's rows in any order of the joins that chance chooses."""

import random
from collections.abc import Iterator
from math import inf

import duckdb
import pytest

from caraway_core.errors import QueryError
from caraway_core.statements import Statement
from caraway_engine.join_orders import OrderPolicy
from caraway_engine.sessions.sessions import Session
from tests.differential.random_orders import JoinStatement, tables
from tests.kit.engine import rows, session
from tests.kit.tables import parquet

pytestmark = pytest.mark.answers

QUICK, LONG = 100, 3_000
LEAST_ACCEPTED, LEAST_CHANGED = 0.9, 0.4
"""Shares of the statements: those that the engine answers, and those whose plans change."""


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("orders")
    return session({name: parquet(folder / name, each, 2) for name, each in tables().items()})


@pytest.fixture(scope="module")
def judge() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, each in tables().items():
            connection.register(name, each)
        yield connection


async def check(of: Session, judge: duckdb.DuckDBPyConnection, numbers: range) -> None:
    reruns = of._statements.reruns
    accepted = changed = 0
    for number in numbers:
        sql = JoinStatement(number).sql()
        expected = judge.execute(sql).fetchall()
        reruns.policy = OrderPolicy(inf, -inf, inf, -inf, pick=random.Random(number).choice)
        try:
            answer = await rows(of, sql)
        except QueryError:
            continue
        assert [tuple(each.values()) for each in answer] == expected, sql
        accepted += 1
        plan = of._statements.kept(Statement(sql, {}))
        assert plan is not None
        changed += reruns.ordered(plan) is not reruns.optimized(plan)
    assert accepted >= LEAST_ACCEPTED * len(numbers)
    assert changed >= LEAST_CHANGED * len(numbers)


async def test_the_same_joins_every_time(of: Session, judge: duckdb.DuckDBPyConnection) -> None:
    await check(of, judge, range(QUICK))


@pytest.mark.full
@pytest.mark.timeout(1800)
async def test_many_joins(of: Session, judge: duckdb.DuckDBPyConnection) -> None:
    await check(of, judge, range(QUICK, QUICK + LONG))
