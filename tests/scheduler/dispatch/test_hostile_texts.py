"""Statements whose texts look like plans are routed by their real plans."""

from pathlib import Path

import pyarrow as pa

from caraway_core.ids import TableName, new_query_id
from caraway_core.statements import Statement
from caraway_core.tables import TableSpec
from tests.kit.clusters import in_process_cluster
from tests.kit.engine import memory
from tests.kit.hostile import HOSTILE, TEMPLATES, identifier, literal
from tests.kit.tables import parquet

_READS = [each for each in TEMPLATES if "FROM t" in each and each.startswith(("SELECT", "WITH"))]


async def test_executors_run_what_reads_tables_whatever_it_says(tmp_path: Path) -> None:
    tables: dict[str, TableSpec | str] = {
        "t": parquet(tmp_path / "t", pa.table({"a": [1, 2], "b": ["x", "y"]}), 2),
        "u": parquet(tmp_path / "u", pa.table({"a": [1, 3], "b": ["x", "z"]}), 2),
        "log": memory(a=[1], b=["x"]),
    }
    async with in_process_cluster(tmp_path, tables) as cluster:
        for text in HOSTILE:
            for template in _READS:
                sql = template.format(text=literal(text), name=identifier(text))
                explained = await cluster.execute(f"EXPLAIN {sql}")
                assert "distributed_plan" in explained["plan_type"].to_pylist(), sql
            shown = f"SELECT a, {literal(text)} AS b FROM t"
            answer = await cluster.execute(f"{shown} ORDER BY a")
            assert answer.to_pylist() == [{"a": 1, "b": text}, {"a": 2, "b": text}]

        writable = frozenset({TableName("log")})
        for text in HOSTILE:
            insert = Statement(f"INSERT INTO log VALUES (2, {literal(text)})", {}, True, writable)
            stream = await cluster.dispatch.execute(new_query_id(), insert)
            assert stream.written == "log"
            assert [batch.to_pylist() async for batch in stream] == [[{"count": 1}]]
        kept = await cluster.execute("SELECT b FROM log WHERE a = 2")
        assert sorted(kept["b"].to_pylist()) == sorted(HOSTILE)
