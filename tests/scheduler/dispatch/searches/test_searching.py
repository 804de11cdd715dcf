"""Statements with searches mean what plain SQL says, on one node and on clusters."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import CatalogMovedError, InvalidQueryError
from caraway_core.ids import ExecutorId, new_query_id
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.sqltext.searching import SearchMethod
from caraway_core.statements import Statement
from caraway_core.tables import FilesTable, TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_scheduler.dispatch.searches.searching import SearchDispatch
from tests.kit import tables
from tests.kit.clusters import in_process_cluster
from tests.kit.engine import memory, snapshot
from tests.kit.searching import CountingReranker, PlainSearches, score, searching

WORDS = "red green blue cat dog bird tree sea".split()
COUNT = 60
DOCS = memory(
    id=pa.array(range(COUNT), pa.int64()),
    body=[" ".join(WORDS[n * k % 8] for k in range(1, 2 + n % 7)) for n in range(COUNT)],
    cat=["xyz"[n % 3] for n in range(COUNT)],
    at=pa.array([86_400_000_000 * n for n in range(COUNT)], pa.timestamp("us", "UTC")),
)
TAGS = memory(doc=[n % 20 for n in range(40)], tag=[("hot", "cold")[n % 2] for n in range(40)])
VIEWS = {
    "hits": "SELECT id, cat, score FROM vector_search(docs, 'red cat') WHERE cat <> 'z'",
    "few": "SELECT h.id, h.score, 1 AS one FROM hits h WHERE id > 9",
}
VECTOR = score(SearchMethod.VECTOR, "body", "red cat")
CAT_Y = "cat = 'y'"
TEXT = score(SearchMethod.TEXT, "body", "red")


def _top(columns: str, by: str, where: str = "true", limit: int = 1000) -> str:
    return (
        f"(SELECT {columns}, {by} AS score FROM docs WHERE {where} "
        f"ORDER BY score DESC, id LIMIT {limit})"
    )


def _files(folder: Path, rows: pa.Table, count: int) -> FilesTable:
    """Write files, and read them with the engine's own types, so that they can be divided."""
    made = tables.parquet(folder, rows, count)
    text = pa.string_view()
    schema = pa.schema(
        [each.with_type(text) if pa.types.is_string(each.type) else each for each in rows.schema]
    )
    (scan,) = made.scans
    return FilesTable(schema, (replace(scan, paths=(f"{folder}/",), schema=schema),))


@asynccontextmanager
async def _started(
    folder: Path, executors: int
) -> AsyncIterator[tuple[SearchDispatch, PlainSearches]]:
    """Start a node, or a cluster of some executors."""
    files: dict[str, TableSpec | str] = {
        "docs": _files(folder / "docs", DOCS.rows, 4),
        "tags": _files(folder / "tags", TAGS.rows, 2),
        **VIEWS,
    }
    async with AsyncExitStack() as stack:
        dispatch: Dispatch
        if executors:
            started = in_process_cluster(folder, files, executors=executors)
            dispatch = (await stack.enter_async_context(started)).dispatch
        else:
            dispatch = _node()
            stack.push_async_callback(dispatch.aclose)
            assert not await dispatch.install(snapshot(files))
        yield searching(dispatch)


def _node() -> InProcessDispatch:
    return InProcessDispatch(LocalExecutor(EngineSettings(2)), ExecutorId("here"))


async def _rows(
    dispatch: Dispatch, sql: str, parameters: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    statement = Statement(sql, dict(parameters or {}), sources=frozenset())
    stream = await dispatch.execute(new_query_id(), statement)
    return [row async for batch in stream for row in batch.to_pylist()]


SAME = [
    (
        "SELECT id, score FROM vector_search(docs, 'red cat', 7) ORDER BY score DESC, id",
        f"SELECT id, score FROM {_top('id', VECTOR, limit=7)} ORDER BY score DESC, id",
    ),
    (
        "SELECT * FROM vector_search(docs, 'red cat', 7) WHERE cat = 'x' ORDER BY id",
        f"SELECT * FROM {_top('*', VECTOR, f'cat = {chr(39)}x{chr(39)}', 7)} ORDER BY id",
    ),
    (
        "SELECT id FROM text_search(docs, 'red', 9) s WHERE id IN (SELECT doc FROM tags "
        "WHERE tag = 'hot') AND at > '1970-01-05' ORDER BY id",
        "SELECT id FROM "
        + _top(
            "id",
            TEXT,
            "id IN (SELECT doc FROM tags WHERE tag = 'hot') AND at > '1970-01-05'",
            9,
        )
        + " ORDER BY id",
    ),
    (
        "SELECT s.id, tag, s.score FROM vector_search(docs, 'red cat', 12) s "
        "JOIN tags t ON t.doc = s.id ORDER BY 1, 2",
        f"SELECT s.id, tag, s.score FROM {_top('id', VECTOR, limit=12)} s "
        "JOIN tags t ON t.doc = s.id ORDER BY 1, 2",
    ),
    (
        "SELECT d.cat, count(*), max(score) FROM docs d "
        "LEFT JOIN text_search(docs, 'red', 20) s ON s.id = d.id GROUP BY d.cat ORDER BY 1",
        "SELECT d.cat, count(*), max(score) FROM docs d "
        f"LEFT JOIN {_top('id', TEXT, limit=20)} s ON s.id = d.id GROUP BY d.cat ORDER BY 1",
    ),
    (
        "WITH v AS (SELECT * FROM vector_search(docs, 'red cat', 20)) SELECT v.id FROM v "
        "JOIN text_search(docs, 'red', 30) t ON t.id = v.id WHERE t.score > 3 ORDER BY 1",
        f"SELECT v.id FROM {_top('id', VECTOR, limit=20)} v "
        f"JOIN {_top('id', TEXT, limit=30)} t ON t.id = v.id WHERE t.score > 3 ORDER BY 1",
    ),
    (
        "SELECT d.id, (SELECT max(s.score) FROM text_search(docs, 'red', 20) s "
        "WHERE s.cat = d.cat) AS best FROM docs d ORDER BY 1",
        f"SELECT d.id, (SELECT max(s.score) FROM {_top('id, cat', TEXT, limit=20)} s "
        "WHERE s.cat = d.cat) AS best FROM docs d ORDER BY 1",
    ),
    (
        "SELECT id FROM text_search(docs, 'red', 9) s WHERE s.id > (SELECT avg(a.id) FROM docs a "
        "WHERE a.cat = s.cat) AND EXISTS (SELECT 1 FROM docs a WHERE a.id = s.id + 9) ORDER BY 1",
        "SELECT id FROM " + _top("id", TEXT, "id BETWEEN 30 AND 50", 9) + " ORDER BY 1",
    ),
    (
        "SELECT count(*) AS n FROM docs WHERE id NOT IN (SELECT id FROM hits)",
        f"SELECT count(*) AS n FROM docs WHERE id NOT IN (SELECT id FROM "
        f"{_top('id', VECTOR, 'cat <> ' + repr('z'))})",
    ),
    (
        "SELECT id, one FROM few ORDER BY score DESC, id LIMIT 5",
        f"SELECT id, 1 AS one FROM {_top('id', VECTOR, 'cat <> ' + repr('z') + ' AND id > 9')} "
        "ORDER BY score DESC, id LIMIT 5",
    ),
    (
        "SELECT (SELECT max(score) FROM text_search(docs, 'red') WHERE cat = 'y') AS best",
        f"SELECT max({TEXT}) AS best FROM docs WHERE cat = 'y'",
    ),
    (
        "SELECT tag, count(*) FROM tags t WHERE EXISTS (SELECT 1 FROM text_search(docs, 'red', "
        "10) s WHERE s.id = t.doc) GROUP BY tag ORDER BY 1",
        "SELECT tag, count(*) FROM tags t WHERE EXISTS (SELECT 1 FROM "
        f"{_top('id', TEXT, limit=10)} s WHERE s.id = t.doc) GROUP BY tag ORDER BY 1",
    ),
    (
        "SELECT id FROM vector_search(docs, 'red cat', 3) UNION "
        "SELECT id FROM text_search(docs, 'red', 3) ORDER BY id",
        f"SELECT id FROM {_top('id', VECTOR, limit=3)} UNION "
        f"SELECT id FROM {_top('id', TEXT, limit=3)} ORDER BY id",
    ),
]


@pytest.mark.parametrize("executors", [0, 2, 3])
async def test_searches_mean_their_plain_sql(tmp_path: Path, executors: int) -> None:
    async with _started(tmp_path, executors) as (dispatch, _):
        for sql, plain in SAME:
            expected = [list(row.values()) for row in await _rows(dispatch.inner, plain)]
            assert expected
            found = [list(row.values()) for row in await _rows(dispatch, sql)]
            assert found == expected, sql


@pytest.mark.parametrize("executors", [0, 2])
async def test_rows_are_fused_reranked_and_explained(tmp_path: Path, executors: int) -> None:
    async with _started(tmp_path, executors) as (dispatch, tables_):
        await _check_fusion(dispatch)
        await _check_reranking(dispatch)
        await _check_explained(dispatch, tables_)


async def _check_fusion(dispatch: SearchDispatch) -> None:
    by = {
        name: [
            row["id"] for row in await _rows(dispatch.inner, f"SELECT id FROM {_top('id', score_)}")
        ]
        for name, score_ in (("vector", VECTOR), ("text", TEXT))
    }
    expected = sorted(
        range(COUNT),
        key=lambda each: (
            -(1 / (61 + by["vector"].index(each)) + 2 / (61 + by["text"].index(each))), each
        ),
    )  # fmt: skip
    fusion = "rrf(vector_search(docs, 'red cat'), text_search(docs, 'red', rank_weight => 2))"
    assert [row["id"] for row in await _rows(dispatch, f"SELECT id FROM {fusion}")] == expected


async def _check_reranking(dispatch: SearchDispatch) -> None:
    found = await _rows(dispatch.inner, f"FROM {_top('id, body', VECTOR, CAT_Y, 20)} SELECT *")
    judged = CountingReranker().scores("dog sea", [row["body"] for row in found])
    best = sorted(zip(judged, [row["id"] for row in found], strict=True), key=lambda each: -each[0])
    reranked = await _rows(
        dispatch,
        "SELECT id, rerank_score FROM rerank(input => TABLE(SELECT id, body FROM "
        "vector_search(docs, $1) WHERE cat = $2 LIMIT 20), query => 'dog sea', model => 'counting')"
        " LIMIT 3",
        {"1": "red cat", "2": "y"},
    )
    assert [(row["rerank_score"], row["id"]) for row in reranked] == best[:3]


async def _check_explained(dispatch: SearchDispatch, tables_: PlainSearches) -> None:
    tables_.asked.clear()
    sql = "SELECT id FROM vector_search(docs, 'red cat') WHERE cat = 'x' LIMIT 5"
    told = {row["plan_type"]: row["plan"] for row in await _rows(dispatch, f"EXPLAIN {sql}")}
    assert told["search_plan"] == (
        "search$1.vector_search: vector search of docs.body: query='red cat', columns=[id, cat], "
        'limit=5, filter=("docs"."cat" = \'x\'), index=exact, probes=all'
    )
    assert tables_.asked == []
    told = {r["plan_type"]: r["plan"] for r in await _rows(dispatch, f"EXPLAIN ANALYZE {sql}")}
    assert "index=exact, probes=all, 5 rows, " in told["search_plan"]
    assert len(tables_.asked) == 1


async def test_a_join_with_found_rows_runs_in_stages(tmp_path: Path) -> None:
    async with _started(tmp_path, 2) as (dispatch, _):
        sql = "SELECT d.cat, count(*), min(s.id) FROM docs d {} hits s ON s.id = d.id GROUP BY 1"
        told = await _rows(dispatch, f"EXPLAIN ANALYZE {sql.format('JOIN')}")
        (stages,) = (each["plan"] for each in told if "distributed" in each["plan_type"])
        assert "2 tasks on e1, e2" in stages
        assert "search$1$hits.vector_search" in stages
        told = await _rows(dispatch, f"EXPLAIN {sql.format('LEFT JOIN')}")
        (stages,) = (each["plan"] for each in told if "distributed" in each["plan_type"])
        assert "2 tasks on e1, e2" in stages
        alone = "SELECT count(*) AS n FROM vector_search(docs, 'q', 5)"
        assert await _rows(dispatch, alone) == [{"n": 5}]


async def test_searches_and_their_statement_read_one_catalog() -> None:
    dispatch = _node()
    try:
        await dispatch.install(snapshot({"docs": DOCS}))
        over, tables_ = searching(dispatch)
        moved = snapshot({"docs": memory(id=[900], body=["red"], cat=["x"])}, version=2)

        async def move() -> None:
            if len(tables_.points) == 1:
                await dispatch.install(moved)

        tables_.on_found = move
        sql = (
            "SELECT s.id AS one, d.id AS other FROM vector_search(docs, 'q', 1) s, docs d "
            "WHERE d.id >= s.id ORDER BY 2 LIMIT 1"
        )
        assert await _rows(over, sql) == [{"one": 900, "other": 900}]
        assert [each.catalog_version for each in tables_.points] == [1, 2]
    finally:
        await dispatch.aclose()


async def test_a_catalog_that_keeps_moving_ends_the_statement() -> None:
    dispatch = _node()
    try:
        await dispatch.install(snapshot({"docs": DOCS}))
        over, tables_ = searching(dispatch)
        versions = iter(range(2, 99))
        tables_.on_found = lambda: dispatch.install(
            snapshot({"docs": DOCS}, version=next(versions))
        )
        with pytest.raises(CatalogMovedError):
            await _rows(over, "SELECT id FROM vector_search(docs, 'q')")
    finally:
        await dispatch.aclose()


async def test_a_failed_search_fails_the_statement() -> None:
    dispatch = _node()
    try:
        await dispatch.install(snapshot({"docs": DOCS}))
        over, _ = searching(dispatch)
        with pytest.raises(InvalidQueryError, match="column 'cat' cannot be searched"):
            await _rows(
                over, "SELECT id FROM rrf(vector_search(docs, 'q', cat), text_search(docs, 'q'))"
            )
        with pytest.raises(InvalidQueryError, match="more than 1,000 rows; add LIMIT"):
            await _rows(
                over,
                "SELECT * FROM rerank(input => TABLE(SELECT a.body FROM docs a, docs), "
                "query => 'q')",
            )
    finally:
        await dispatch.aclose()


async def test_other_statements_pass_unchanged() -> None:
    dispatch = _node()
    try:
        await dispatch.install(snapshot({"docs": DOCS, **{"few": "SELECT id FROM docs"}}))
        over, tables_ = searching(dispatch)
        assert len(await _rows(over, "SELECT 'vector_search(docs)' FROM few")) == COUNT
        assert tables_.asked == []
        stream = await over.execute(new_query_id(), Statement("SELECT id FROM few", {}))
        assert stream.reads_only_catalog
    finally:
        await dispatch.aclose()
