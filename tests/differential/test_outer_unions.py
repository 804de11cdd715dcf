"""UNIONs of outer joins have DuckDB's answer on three executors, whatever each of them reads."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import duckdb
import pytest

from caraway_core.errors import QueryError
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from tests.differential import asking, key_tables
from tests.differential.asking import Runner
from tests.differential.comparing import unmatched
from tests.differential.datasets import Dataset
from tests.differential.outer_unions import unions
from tests.differential.rows import of_table as rows_of
from tests.differential.runners import Distributed, Opening, single_node
from tests.kit import generating
from tests.kit.clusters import TINY, in_process_cluster
from tests.kit.stored import stored

pytestmark = pytest.mark.answers

UNIONS = unions()
QUICK_EXAMPLES = 12
LONG_EXAMPLES = 1500
ACCELERATED = ("second", "visits")
POLICIES = {
    "divided": TINY,
    # The smaller tables are read whole, next to shares of the larger ones.
    "copied": Policy(small_table_bytes=1500, broadcast_bytes=512, gather_bytes=512),
}
SQL_OF_AGAIN = "CREATE VIEW again AS FROM first"


def opening(policy: Policy) -> Opening:
    """Open three executors. Two datasets have the same files, and others are in memory."""

    @asynccontextmanager
    async def opened(dataset: Dataset) -> AsyncIterator[Distributed]:
        with tempfile.TemporaryDirectory() as folder:
            tables: dict[str, TableSpec] = {
                str(name): spec for name, spec in dataset.snapshot().tables.items()
            }
            tables["again"] = tables["first"]
            async with single_node(dataset) as node:
                for name in ACCELERATED:
                    rows = await node.execute(f'SELECT * FROM "{name}"')
                    tables[name] = await stored(Path(folder) / "chunks", rows, 5, name)
            async with in_process_cluster(
                Path(folder), tables, executors=3, policy=policy, settings=EngineSettings(2)
            ) as cluster:
                yield cluster

    return opened


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return key_tables.build(tmp_path_factory.mktemp("unions") / "keys")


@pytest.fixture(scope="module", params=POLICIES)
def runner(request: pytest.FixtureRequest, keys: Dataset) -> Iterator[Runner]:
    with asking.opened(opening(POLICIES[request.param]), keys) as made:
        yield made


@pytest.fixture(scope="module")
def duck(keys: Dataset) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for table in keys.tables:
            connection.sql(f"CREATE VIEW {table} AS FROM '{keys.folder / table}/*.parquet'")
        connection.sql(SQL_OF_AGAIN)
        yield connection


def agree(sql: str, runner: Runner, duck: duckdb.DuckDBPyConnection) -> None:
    got = runner.outcome(sql)
    assert not isinstance(got, QueryError), f"{got.message}\n\n{sql}"
    expected = duck.execute(sql).to_arrow_table()
    assert got.num_rows == expected.num_rows, sql
    assert unmatched(rows_of(expected), rows_of(got)) == [], sql


@pytest.mark.timeout(400)
def test_the_same_unions_every_time(runner: Runner, duck: duckdb.DuckDBPyConnection) -> None:
    generating.check_same(UNIONS, QUICK_EXAMPLES, lambda sql: agree(sql, runner, duck))


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_other_unions_every_time(
    runner: Runner, duck: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    generating.check_others(unions(), LONG_EXAMPLES, lambda sql: agree(sql, runner, duck), request)
