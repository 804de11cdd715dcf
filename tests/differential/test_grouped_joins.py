"""Groupings of LEFT joins in stages have DuckDB's rows, wherever the rows are grouped."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import duckdb
import pyarrow as pa
import pytest

from caraway_core.tables import FilesTable
from caraway_engine.stages import Policy, early_groups
from tests.differential.comparing import unmatched
from tests.differential.grouped_joins import statement
from tests.differential.rows import of_table as rows_of
from tests.kit.clusters import EAGER, TINY, InProcessCluster, in_process_cluster

pytestmark = pytest.mark.answers

QUICK, LONG = 100, 3_000
LEAST_GROUPED_FIRST = 0.2
"""The share of the statements whose right side is grouped before the join."""
MIXED = replace(TINY, small_table_bytes=1500, spread_bytes=0, broadcast_bytes=512)


@asynccontextmanager
async def cluster(
    folder: Path, files: dict[str, FilesTable], policy: Policy
) -> AsyncIterator[InProcessCluster]:
    async with in_process_cluster(folder, files, policy=policy) as running:
        yield running


async def check(
    running: InProcessCluster, judge: duckdb.DuckDBPyConnection, numbers: range
) -> None:
    with mock.patch.object(early_groups, "_joined", wraps=early_groups._joined) as grouped_first:
        for number in numbers:
            sql = statement(number)
            expected = judge.execute(sql).to_arrow_table()
            answer: pa.Table = await running.execute(sql)
            assert answer.num_rows == expected.num_rows, sql
            assert unmatched(rows_of(expected), rows_of(answer)) == [], sql
    assert grouped_first.call_count >= LEAST_GROUPED_FIRST * len(numbers)


@pytest.mark.parametrize("policy", [EAGER, TINY, MIXED], ids=["eager", "tiny", "mixed"])
async def test_the_same_groupings_every_time(
    tmp_path: Path, files: dict[str, FilesTable], judge: duckdb.DuckDBPyConnection, policy: Policy
) -> None:
    async with cluster(tmp_path, files, policy) as running:
        await check(running, judge, range(QUICK))


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("policy", [EAGER, MIXED], ids=["eager", "mixed"])
async def test_many_groupings(
    tmp_path: Path, files: dict[str, FilesTable], judge: duckdb.DuckDBPyConnection, policy: Policy
) -> None:
    async with cluster(tmp_path, files, policy) as running:
        await check(running, judge, range(QUICK, QUICK + LONG))
