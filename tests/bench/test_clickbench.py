"""The queries of ClickBench are known to both engines, and find rows in the sample."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import answers, clickbench, hits
from bench.clickbench_queries import QUERIES
from caraway_core.statements import Statement
from tests.kit.engine import session
from tests.kit.tables import parquet

ROWS = 20_000
NEED_MORE_ROWS = {22, 39, 42, 43}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hits.file(ROWS, tmp_path_factory.mktemp("hits"))


async def test_both_engines_answer_alike(file: Path) -> None:
    stored = parquet(file.parent / "stored", pq.read_table(file), 1)
    ours, theirs = session({"hits": stored}), clickbench.opened(file)
    empty = set()
    for number, query in enumerate(QUERIES, 1):
        columns = theirs(query.sql).num_columns
        sql = query.compared(columns)
        stream = ours.start(Statement(sql, {}))
        batches = [each async for each in stream]
        answer = pa.Table.from_batches(batches, batches[0].schema if batches else stream.schema)
        assert answers.difference(answer, theirs(sql)) is None, sql
        if not answer.num_rows:
            empty.add(number)
    assert len(QUERIES) == 43
    assert empty <= NEED_MORE_ROWS


def test_the_same_rows_are_drawn_again(file: Path, tmp_path: Path) -> None:
    assert hits.file(ROWS, tmp_path).read_bytes() == file.read_bytes()


def test_rows_have_the_columns_and_the_order_of_the_published_table(file: Path) -> None:
    schema = pq.read_schema(file)
    assert len(schema) == 105
    unordered = duckdb.sql(f"""
        SELECT count(*) FROM (
            SELECT ("CounterID", "EventDate", "UserID") AS mine, lag(mine) OVER () AS before
            FROM '{file}') WHERE mine < before""").fetchall()
    assert unordered == [(0,)]
