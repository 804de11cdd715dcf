"""One process and clusters find the same rows with the same scores, whatever happens to them."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.ids import ExecutorId
from caraway_search.vectors import exact
from caraway_search.vectors.exact import QueryVector
from tests.kit.cluster_runtime import Clustered, clustered
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

MODEL = "builtin:wordllama"
MANIFEST = f"""
    runtime:
      caching: {{search_results: {{enabled: false}}}}
    datasets:
      - from: cdc:docs
        name: docs
        access: read_write
        columns:
          - {{name: id, type: bigint}}
          - {{name: kind, type: text}}
          - name: title
            type: text
            full_text_search: {{enabled: true}}
          - name: body
            type: text
            embeddings: [{{from: '{MODEL}'}}]
            full_text_search: {{enabled: true}}
        acceleration:
          enabled: true
          refresh_mode: changes
          primary_key: id
          partition_by: ['bucket(6, id)']
      - from: file:base.parquet
        name: base
        columns:
          - name: body
            embeddings: [{{from: '{MODEL}'}}]
            full_text_search: {{enabled: true}}
        acceleration: {{enabled: true, primary_key: id, partition_by: ['bucket(6, id)']}}
"""
WORDS = ("bread butter salt water cluster executor key piano rotate scale market share price "
         "garden kitten wool ball sofa").split()  # fmt: skip
FILTERS = (None, "kind = 'b'", "id % 3 = 1", "id IN (SELECT id + 1 FROM docs WHERE kind = 'a')",
           "title IS NULL", "false")  # fmt: skip


_TABLES = (["docs"], ["base"], ["base", "docs"])


class Documents:
    """Makes documents, changes of them and searches, by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def text(self, most: int) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(1, most)))

    def _row(self, number: int) -> str:
        title = "NULL" if self._random.random() < 0.2 else f"'{self.text(3)}'"
        body = "NULL" if self._random.random() < 0.1 else f"'{self.text(12)}'"
        return f"({number}, '{self._random.choice('abc')}', {title}, {body})"

    def inserted(self, first: int, count: int) -> str:
        rows = ", ".join(self._row(first + number) for number in range(count))
        return f"INSERT INTO docs (id, kind, title, body) VALUES {rows}"

    def table(self, count: int) -> pa.Table:
        bodies = [self.text(12) if self._random.random() < 0.9 else None for _ in range(count)]
        kinds = self._random.choices("abc", k=count)
        titles = pa.nulls(count, pa.string())
        return pa.table({"id": range(count), "kind": kinds, "title": titles, "body": bodies})

    def changes(self) -> Sequence[str]:
        ids = self._random.sample(range(60), 6)
        return (
            f"UPDATE docs SET body = '{self.text(9)}' WHERE id IN ({ids[0]}, {ids[1]})",
            f"DELETE FROM docs WHERE id IN ({ids[2]}, {ids[3]})",
            f"UPDATE docs SET kind = 'b', title = NULL WHERE id IN ({ids[4]}, {ids[5]})",
        )

    def search(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"text": self.text(3), "datasets": self._random.choice(_TABLES)}
        asked["limit"] = self._random.choice((1, 5, 200))
        asked["where"] = self._random.choice(FILTERS)
        if self._random.random() < 0.4:
            asked["keywords"] = [self._random.choice((self.text(2), "rot*", "+key", "kiten~"))]
        return asked


@asynccontextmanager
async def serving(
    folder: Path, base: pa.Table, *executors: int
) -> AsyncIterator[list[Running | Clustered]]:
    """Serve one process, and a cluster of each of these sizes."""
    async with AsyncExitStack() as stack:
        served: list[Running | Clustered] = []
        for count in (0, *executors):
            own = folder / str(count)
            own.mkdir()
            pq.write_table(base, own / "base.parquet")
            if count:
                opened = clustered(own, MANIFEST, executors=count)
                served.append(await stack.enter_async_context(opened))
            else:
                served.append(await stack.enter_async_context(running(own, MANIFEST)))
        yield served


def _runtime(served: Running | Clustered) -> Running:
    return served.runtime if isinstance(served, Clustered) else served


async def _is_loaded(runtime: Running) -> bool:
    return bool((await runtime.sql("SELECT 1 FROM base")).status_code == 200)


async def _run(served: Sequence[Running | Clustered], sql: str) -> None:
    for each in served:
        answer = await _runtime(each).sql(sql)
        assert answer.status_code == 200, answer.text


async def _all_find(served: Sequence[Running | Clustered], asked: dict[str, Any]) -> Any:
    found = []
    for each in served:
        answer = await _runtime(each).api.post("/v1/search", json=asked)
        assert answer.status_code == 200, (asked, answer.text)
        found.append(answer.json()["results"])
    for other in found[1:]:
        assert other == found[0], asked
    return found[0]


async def _check_words(served: Sequence[Running | Clustered], text: str) -> None:
    for name in ("docs", "base"):
        sql = f"SELECT id, score FROM text_search({name}, '{text}', body) ORDER BY score DESC, id"
        found = [(await _runtime(each).sql(sql)).json() for each in served]
        assert found[0] and all(other == found[0] for other in found)


async def _check_meaning(runtime: Running, text: str) -> None:
    """Compare with the scores of all vectors in numpy."""
    sql = "SELECT id, body_embedding AS e FROM base WHERE body_embedding IS NOT NULL"
    rows = (await runtime.sql(sql)).json()
    (query,) = (await runtime.sql(f"SELECT embed('{text}', '{MODEL}') AS e")).json()
    vectors = np.array([row["e"] for row in rows], np.float32)
    scores = exact.scores(vectors, QueryVector.from_values(np.array(query["e"], np.float32)))
    expected = sorted((-score, row["id"]) for row, score in zip(rows, scores, strict=True))[:10]
    sql = f"SELECT id, score FROM vector_search(base, '{text}', limit => 10) ORDER BY 2 DESC, id"
    found = (await runtime.sql(sql)).json()
    assert [(-row["score"], row["id"]) for row in found] == expected


async def _lives(folder: Path, seed: int, rounds: int, searches: int, *executors: int) -> None:
    made = Documents(seed)
    async with serving(folder, made.table(90), *executors) as served:
        for each in served:
            await eventually(partial(_is_loaded, _runtime(each)), "the files are loaded")
        await _run(served, made.inserted(0, 60))
        for number in range(rounds):
            for sql in made.changes():
                await _run(served, sql)
            await _run(served, made.inserted(100 * (number + 1), 5))
            if number == rounds - 1:
                cluster = served[-1]
                assert isinstance(cluster, Clustered)
                await cluster.fleet.lose(ExecutorId("e2"))
            sizes = [len(await _all_find(served, made.search())) for _ in range(searches)]
            assert any(sizes)
        await _check_words(served, " ".join(WORDS))
        for each in served:
            await _check_meaning(_runtime(each), made.text(2))


async def test_clusters_find_what_one_process_finds(tmp_path: Path) -> None:
    await _lives(tmp_path, 1, 2, 5, 3)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10, 16))
async def test_clusters_find_what_one_process_finds_for_longer(tmp_path: Path, seed: int) -> None:
    await _lives(tmp_path, seed, 5, 12, 2, 3)
