"""Rows that come with a statement, on a cluster."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from caraway_core.ids import TableName, new_query_id
from caraway_core.statements import GivenRows, Statement
from caraway_core.tables import TableSpec
from tests.kit.clusters import EAGER, in_process_cluster
from tests.kit.engine import memory
from tests.kit.tables import parquet

GIVEN = GivenRows.from_table(pa.table({"a": [3, 4]}))


def reading(sql: str) -> Statement:
    schema, _, bare = GIVEN.name.partition(".")
    return Statement(sql.format(given=f'"{schema}"."{bare}"'), {}, given=GIVEN)


async def test_rows_are_read_where_the_statement_runs(tmp_path: Path) -> None:
    tables: dict[str, TableSpec] = {
        "kept": memory(a=[1, 2]),
        "facts": parquet(tmp_path / "facts", pa.table({"a": [4, 4, 5]}), 3),
    }
    async with in_process_cluster(tmp_path, tables, policy=EAGER) as cluster:

        async def rows(statement: Statement) -> list[dict[str, object]]:
            stream = await cluster.dispatch.execute(new_query_id(), statement)
            batches = [batch async for batch in stream]
            found: list[dict[str, object]]
            found = pa.Table.from_batches(batches, stream.schema).to_pylist()
            return found

        assert await rows(reading("SELECT sum(a) AS s FROM {given}")) == [{"s": 7}]
        joined = "SELECT count(*) AS n FROM facts JOIN {given} AS g ON facts.a = g.a"
        assert await rows(reading(joined)) == [{"n": 2}]
        writable = frozenset({TableName("kept")})
        insert = reading("INSERT INTO kept SELECT a FROM {given}")
        insert = replace(insert, may_write=True, writable=writable)
        assert await rows(insert) == [{"count": 2}]
        assert (await cluster.execute("SELECT sum(a) AS s FROM kept")).to_pylist() == [{"s": 10}]
        # Other statements do not see them, now or later.
        assert await rows(Statement("SHOW TABLES", {})) != []
        listed = await cluster.execute(
            "SELECT count(*) AS n FROM information_schema.tables WHERE table_schema = 'exchange'"
        )
        assert listed.to_pylist() == [{"n": 0}]
