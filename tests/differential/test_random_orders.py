"""Random joins have DuckDB's rows in any order of the joins that chance chooses."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from caraway_core.statements import Statement
from caraway_core.tables import FilesTable
from caraway_engine.sessions.sessions import Session
from tests.differential.random_orders import JoinStatement
from tests.differential.runners import by_chance
from tests.kit.clusters import EAGER, InProcessCluster, in_process_cluster
from tests.kit.engine import rows, session

pytestmark = pytest.mark.answers

QUICK, LONG, LONG_IN_STAGES = 100, 3_000, 1_000
LEAST_ACCEPTED, LEAST_CHANGED = 0.9, 0.4
"""Shares of the statements: those that the engine answers, and those whose plans change."""


class Checked:
    """Compares statements with DuckDB, and counts those that are accepted and changed."""

    def __init__(self, judge: duckdb.DuckDBPyConnection, planned: Session) -> None:
        self._judge = judge
        self._planned = planned
        self._asked = self._accepted = self._changed = 0

    def expected(self, number: int) -> tuple[str, list[tuple[object, ...]]]:
        """Return a statement and its rows; the engine joins in an order of its own."""
        self._planned._statements.reruns.policy = by_chance(random.Random(number))
        self._asked += 1
        sql = JoinStatement(number).sql()
        return sql, self._judge.execute(sql).fetchall()

    def agree(
        self, sql: str, expected: Sequence[tuple[object, ...]], answer: Sequence[dict[str, object]]
    ) -> None:
        assert [tuple(each.values()) for each in answer] == list(expected), sql
        self._accepted += 1
        planner = self._planned._statements
        plan = planner.kept(Statement(sql, {}))
        assert plan is not None
        self._changed += planner.reruns.ordered(plan) is not planner.reruns.optimized(plan)

    def check(self) -> None:
        assert self._accepted >= LEAST_ACCEPTED * self._asked
        assert self._changed >= LEAST_CHANGED * self._asked


async def check(
    files: dict[str, FilesTable], judge: duckdb.DuckDBPyConnection, numbers: range
) -> None:
    of = session(files)
    checked = Checked(judge, of)
    for number in numbers:
        sql, expected = checked.expected(number)
        try:
            answer = await rows(of, sql)
        except QueryError:
            continue
        checked.agree(sql, expected, answer)
    checked.check()


@asynccontextmanager
async def cluster(
    folder: Path, files: dict[str, FilesTable]
) -> AsyncIterator[tuple[InProcessCluster, Session]]:
    async with in_process_cluster(folder, files, policy=EAGER) as running:
        planned = running.engine._local.session
        assert planned is not None
        yield running, planned


async def check_in_stages(
    folder: Path,
    files: dict[str, FilesTable],
    judge: duckdb.DuckDBPyConnection,
    numbers: range,
) -> None:
    async with cluster(folder, files) as (running, planned):
        checked = Checked(judge, planned)
        for number in numbers:
            sql, expected = checked.expected(number)
            try:
                answer: pa.Table = await running.execute(sql)
            except QueryError:
                continue
            checked.agree(sql, expected, answer.to_pylist())
        checked.check()
        assert sum(running.tallies.assignments.values()) > 2 * len(numbers)


async def test_the_same_joins_every_time(
    files: dict[str, FilesTable], judge: duckdb.DuckDBPyConnection
) -> None:
    await check(files, judge, range(QUICK))


async def test_the_same_joins_in_stages(
    tmp_path: Path, files: dict[str, FilesTable], judge: duckdb.DuckDBPyConnection
) -> None:
    await check_in_stages(tmp_path, files, judge, range(QUICK))


@pytest.mark.full
@pytest.mark.timeout(1800)
async def test_many_joins(files: dict[str, FilesTable], judge: duckdb.DuckDBPyConnection) -> None:
    await check(files, judge, range(QUICK, QUICK + LONG))


@pytest.mark.full
@pytest.mark.timeout(1800)
async def test_many_joins_in_stages(
    tmp_path: Path, files: dict[str, FilesTable], judge: duckdb.DuckDBPyConnection
) -> None:
    await check_in_stages(tmp_path, files, judge, range(QUICK, QUICK + LONG_IN_STAGES))
