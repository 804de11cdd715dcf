"""An engine that ends between the commit of a write and its answer is no loss of the answer."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.process import write_marks
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.statements.definitions import TableDefinition
from caraway_executor.engines.engines import Engines
from caraway_plugins.sources.iceberg.catalog import IcebergCatalog
from tests.kit import iceberg_rest
from tests.kit.engine import snapshot
from tests.kit.engine_pools import be_patient, engines, rows
from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import SMALL, Written, small

WRITES = {
    "INSERT INTO t VALUES (4, 'd'), (5, 'e')": 2,
    "UPDATE t SET v = 'x' WHERE id > 1": 2,
    "DELETE FROM t WHERE id = 3": 1,
}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)
    monkeypatch.setattr(write_marks, "_DELAYS", Delays(0.0, 0.0))


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    with written_tables.over_rest(written_tables.create(tmp_path, SMALL)) as served:
        served.insert(small(1, 2, 3))
        yield served


def end(made: Engines, _table: str) -> int:
    """End the engine that waits for an answer to its commit."""
    (writing,) = (each for each in made.processes if each.works)
    os.kill(writing.pid, signal.SIGKILL)
    return 503


@pytest.mark.parametrize("sql", WRITES, ids=lambda sql: sql.split()[0])
async def test_a_commit_that_is_there_is_the_answer(written: Written, sql: str) -> None:
    assert written.server is not None
    async with engines(snapshot({"t": written.spec})) as made:
        written.server.after = partial(end, made)
        found = await rows(made, sql, writable=frozenset({TableName("t")}))
        assert found == [{"count": WRITES[sql]}]
        assert sum(made.restarts.values()) == 1
    assert len(written.snapshots()) == 2


async def test_a_commit_that_is_not_there_wrote_nothing(written: Written) -> None:
    assert written.server is not None
    async with engines(snapshot({"t": written.spec})) as made:
        written.server.before = partial(end, made)
        with pytest.raises(ExecutionError, match="no row was written so far"):
            await rows(made, next(iter(WRITES)), writable=frozenset({TableName("t")}))
    assert written.read() == small(1, 2, 3).to_pylist()


async def test_a_catalog_that_is_away_leaves_it_open(written: Written) -> None:
    server = written.server
    assert server is not None
    async with engines(snapshot({"t": written.spec})) as made:

        def end_with_catalog(table: str) -> int:
            server.is_away = True
            return end(made, table)

        server.after = end_with_catalog
        with pytest.raises(ExecutionError, match="look before you run it again"):
            await rows(made, next(iter(WRITES)), writable=frozenset({TableName("t")}))


@pytest.mark.parametrize(("sql", "count"), [("SELECT 1 AS a", 1), ("SELECT 1 AS a WHERE FALSE", 0)])
async def test_a_table_that_was_created_with_rows_is_the_answer(
    tmp_path: Path, sql: str, count: int
) -> None:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("n")
    with closing(catalog), iceberg_rest.serving(catalog) as server:
        asked = CatalogRequest("c", "iceberg", server.url, {}, tmp_path, tmp_path)
        place = IcebergCatalog().place(asked, ListedTable("n", "made"))
        definition = TableDefinition(TableName("c.n.made"), place)
        async with engines() as made:
            server.after = partial(end, made)
            writing = rows(made, sql, may_write=True, defines=definition)
            if count:
                assert await writing == [{"count": count}]
            else:  # Without rows there is no snapshot, which would have the mark.
                with pytest.raises(ExecutionError, match="may be written or not, look before"):
                    await writing
            assert sum(made.restarts.values()) == 1
        assert catalog.table_exists("n.made")
