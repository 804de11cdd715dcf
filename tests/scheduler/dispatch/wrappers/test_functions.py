"""Functions of the manifest over a cluster, and over every method of the dispatch."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import new_query_id
from caraway_core.manifest import load
from caraway_core.statements import Statement
from caraway_core.statements.questions import ParameterQuestion, SearchQuestion, WriteQuestion
from caraway_scheduler.dispatch.wrappers.functions import FunctionDispatch, ManifestFunctions
from tests.kit.clusters import in_process_cluster
from tests.kit.tables import parquet

MANIFEST = """
name: app
functions:
  - name: net
    signature: {args: [{name: gross, type: double}, {name: rate, type: double, default: 0.25}], returns: double}
    body: gross / (1 + rate)
  - name: groups
    kind: table
    signature: {args: [{name: least, type: bigint}]}
    body: SELECT g, net(sum(v)) AS s, count(*) AS n FROM t WHERE v >= $least GROUP BY g
"""  # noqa: E501
ROWS = 3_000
TABLE = pa.table({"g": [n % 7 for n in range(ROWS)], "v": list(range(ROWS))})


def functions(folder: Path, text: str = MANIFEST) -> ManifestFunctions:
    path = folder / "caraway.yaml"
    path.write_text(text)
    made = ManifestFunctions()
    assert made.apply(load(path))
    assert not made.apply(load(path))
    return made


async def test_bodies_are_distributed(tmp_path: Path) -> None:
    tables = {"t": parquet(tmp_path / "t", TABLE, 4)}
    async with in_process_cluster(tmp_path, tables, executors=3) as cluster:
        dispatch = FunctionDispatch(cluster.dispatch, functions(tmp_path))

        async def rows(sql: str, **parameters: Any) -> list[Any]:
            stream = await dispatch.execute(new_query_id(), Statement(sql, parameters))
            return [row async for batch in stream for row in batch.to_pylist()]

        sql = "SELECT g, s, n, net(s, rate => 1) AS half FROM groups($least) ORDER BY g"
        least = 100
        expected = []
        for g in range(7):
            values = [n for n in range(least, ROWS) if n % 7 == g]
            s = sum(values) / 1.25
            expected.append({"g": g, "s": s, "n": len(values), "half": s / 2})
        assert await rows(sql, least=least) == expected
        (explained, *_) = [
            each["plan"] for each in await rows(f"EXPLAIN {sql}", least=least)
            if each["plan_type"] == "distributed_plan"
        ]  # fmt: skip
        assert "reads s" in explained and "t.v >= Int64(100)" in explained


async def test_every_method_sees_the_bodies(tmp_path: Path) -> None:
    tables = {"t": parquet(tmp_path / "t", TABLE, 1)}
    async with in_process_cluster(tmp_path, tables) as cluster:
        dispatch = FunctionDispatch(cluster.dispatch, functions(tmp_path))
        types = await dispatch.ask(
            ParameterQuestion(Statement("SELECT net(?), v FROM groups(?), t", {}))
        )
        assert types.keys() == {"1", "2"}
        assert await dispatch.ask(WriteQuestion(Statement("SELECT net(v) FROM t", {}))) is None
        assert await dispatch.ask(SearchQuestion(Statement("SELECT net(v) FROM t", {}))) == ()
        long = f"SELECT net(1) AS n, {', '.join(f'{n} AS a{n}' for n in range(900))}"
        assert len(long) > 8 * 1024
        stream = await dispatch.execute(new_query_id(), Statement(long, {}))
        assert [row["n"] async for batch in stream for row in batch.to_pylist()] == [0.8]
        with pytest.raises(InvalidQueryError, match="its argument `gross` is missing"):
            await dispatch.execute(new_query_id(), Statement("SELECT net()", {}))
        with pytest.raises(InvalidQueryError, match=r"the bodies of net are in the place"):
            await dispatch.execute(new_query_id(), Statement("SELECT net(x) FROM t", {}))


def test_tables_that_bodies_read_are_known(tmp_path: Path) -> None:
    made = functions(tmp_path)
    before = made.texts
    assert list(before) == ["groups"]
    assert made.texts is before
    text = MANIFEST.replace("0.25", "0.5")
    (tmp_path / "caraway.yaml").write_text(text)
    assert made.apply(load(tmp_path / "caraway.yaml"))
    assert made.texts is not before
