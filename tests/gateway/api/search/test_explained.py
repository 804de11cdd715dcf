"""EXPLAIN says by which index a search is answered, or why by none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from caraway_core.concurrency import tasks
from tests.kit import documents
from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.word_embedder import WordEmbedder

MANIFEST = """
    datasets:
      - from: file:docs.parquet
        name: docs
        columns: &columns
          - name: body
            embeddings: [{from: 'builtin:minilm', row_id: id}]
            full_text_search: {enabled: true, row_id: id}
        acceleration: {enabled: true, primary_key: id, partition_by: ['bucket(4, id)']}
      - from: file:docs.parquet
        name: every
        columns: *columns
        vectors: {enabled: false}
        acceleration: {enabled: true}
      - from: file:docs.parquet
        name: files
        columns: *columns
"""


@asynccontextmanager
async def serving(folder: Path, executors: int) -> AsyncIterator[Running]:
    documents.write(folder)
    if not executors:
        async with running(folder, MANIFEST) as runtime:
            documents.use(runtime, WordEmbedder())
            await eventually(partial(_is_loaded, runtime), "the files are loaded")
            yield runtime
        return
    async with clustered(folder, MANIFEST, executors=executors) as cluster:
        documents.use(cluster.runtime, WordEmbedder())
        await eventually(partial(_is_loaded, cluster.runtime), "the files are loaded")
        yield cluster.runtime


async def _is_loaded(runtime: Running) -> bool:
    return bool((await runtime.sql("SELECT count(*) FROM docs, every")).status_code == 200)


async def plan(runtime: Running, sql: str, word: str = "EXPLAIN") -> str:
    answer = await runtime.sql(f"{word} SELECT id FROM {sql}")
    assert answer.status_code == 200, answer.text
    (found,) = (row["plan"] for row in answer.json() if row["plan_type"] == "search_plan")
    return str(found)


@pytest.mark.parametrize("executors", [0, 2])
async def test_explain_shows_the_index_or_why_there_is_none(tmp_path: Path, executors: int) -> None:
    async with serving(tmp_path, executors) as runtime:
        await _check_indexes(runtime)
        await _check_statements(runtime)


@pytest.mark.parametrize("executors", [0, 2])
async def test_indexes_are_built_before_the_first_search(tmp_path: Path, executors: int) -> None:
    async with serving(tmp_path, executors) as runtime:
        warming = tasks.begin(runtime.services.search.warm_up.run())

        async def is_built() -> bool:
            found = [
                await plan(runtime, f"{search}_search({name}, 'bread')")
                for search, name in (("vector", "docs"), ("text", "docs"), ("text", "every"))
            ]
            return all("segments=" in each and "not_indexed" not in each for each in found)

        await eventually(is_built, "the indexes are built")
        assert not warming.done()
        warming.cancel()


async def _check_indexes(runtime: Running) -> None:
    vectors = "vector_search(docs, 'warm bread')"
    found = await plan(runtime, vectors)
    assert "index=vectors, answers=exact, segments=0, probes=all, " in found
    assert "rows=6, not_indexed=6" in found
    found = await plan(runtime, f"{vectors} WHERE kind = 'food'", "EXPLAIN ANALYZE")
    assert "not_indexed" not in found and "segments=0" not in found
    assert "rows=6, filtered_by=mask, 2 rows, " in found
    fused = f"rrf({vectors}, text_search(docs, 'bread'), join_key => 'id')"
    found = await plan(runtime, fused)
    assert "index=vectors" in found and "index=words, answers=exact, segments=0" in found
    await plan(runtime, fused, "EXPLAIN ANALYZE")
    assert "not_indexed" not in await plan(runtime, fused)


async def _check_statements(runtime: Running) -> None:
    for sql, why in (
        ("vector_search(every, 'bread')", "the manifest disables the index of vectors"),
        ("vector_search(files, 'bread')", "'files' is not an accelerated dataset"),
        ("text_search(files, 'bread')", "'files' is not an accelerated dataset"),
        ("text_search(docs, 'bread') WHERE id IN (SELECT id FROM every)",
         "the filter reads other tables"),
    ):  # fmt: skip
        for word in ("EXPLAIN", "EXPLAIN ANALYZE"):
            assert f"index=none, because={why}" in await plan(runtime, sql, word)
