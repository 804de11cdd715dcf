"""Searches find what an exact oracle finds, to the bit of each score: alone and on clusters."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.search_oracle import FILTERS, Found, Shelf, ids_and_scores, literal

MANIFEST = """
    runtime:
      caching: {search_results: {enabled: false}}
    datasets:
      - from: cdc:docs
        name: docs
        access: read_write
        columns:
          - {name: id, type: bigint}
          - {name: kind, type: text}
          - {name: title, type: text, full_text_search: {enabled: true}}
          - name: body
            type: text
            embeddings: [{from: 'builtin:wordllama'}]
            full_text_search: {enabled: true}
        acceleration:
          enabled: true
          refresh_mode: changes
          primary_key: id
          partition_by: ['bucket(6, id)']
"""


async def _written(served: Sequence[Running], sql: str) -> None:
    for each in served:
        answer = await each.sql(sql)
        assert answer.status_code == 200, answer.text


async def _loaded(served: Running) -> None:
    """Wait until the dataset takes changes."""

    async def look() -> bool:
        return bool((await served.sql("SELECT count(*) FROM docs")).status_code == 200)

    await eventually(look, "the dataset is loaded")


async def _found(served: Running, asked: Mapping[str, Any]) -> Found:
    answer = await served.api.post("/v1/search", json=asked)
    assert answer.status_code == 200, (asked, answer.text)
    return [(each["primary_key"]["id"], each["_score"]) for each in answer.json()["results"]]


async def _check_requests(served: Sequence[Running], shelf: Shelf, count: int) -> None:
    for _ in range(count):
        asked, chosen = shelf.request()
        expected = shelf.expected(asked, chosen)
        for each in served:
            assert await _found(each, asked) == expected, asked


async def _check_sql(served: Sequence[Running], shelf: Shelf) -> None:
    """Each function of SQL with a filter, and its scores."""
    asked, chosen = shelf.text(4), shelf.random.choice(FILTERS)
    limit = shelf.random.choice((3, 100))
    # The rows have another name than the dataset, which subqueries of the filters read.
    where = (chosen.sql or "true").removeprefix("WHERE ").replace("docs.id", "found.id")
    calls = {
        f"text_search(docs, {literal(asked)}, title)": shelf.matching(asked, "title"),
        f"text_search(docs, {literal(asked)}, body)": shelf.matching(asked, "body"),
        f"vector_search(docs, {literal(asked)})": shelf.near(asked),
    }
    for call, scores in calls.items():
        sql = f"SELECT found.id, score FROM {call} found WHERE {where} ORDER BY score DESC, 1"
        for each in served:
            answer = await each.sql(f"{sql} LIMIT {limit}")
            assert answer.status_code == 200, (sql, answer.text)
            assert ids_and_scores(answer.json()) == shelf.best(scores, chosen, limit), sql


async def _lives(folder: Path, seed: int, rounds: int, sizes: Sequence[int]) -> None:
    shelf = Shelf(seed)
    async with AsyncExitStack() as stack:
        served: list[Running] = []
        for size in sizes:
            own = folder / str(size)
            own.mkdir()
            if size:
                cluster = clustered(own, MANIFEST, executors=size)
                served.append((await stack.enter_async_context(cluster)).runtime)
            else:
                served.append(await stack.enter_async_context(running(own, MANIFEST)))
        for each in served:
            await _loaded(each)
        for _ in range(rounds):
            await _written(served, shelf.insert(40))
            await _check_requests(served, shelf, 5)
            for _ in range(3):
                await _written(served, shelf.change())
            await _check_requests(served, shelf, 5)
            await _check_sql(served, shelf)


async def test_searches_are_those_of_the_oracle(tmp_path: Path) -> None:
    await _lives(tmp_path, 3, 1, (0, 2))


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(20, 24))
async def test_searches_are_those_of_the_oracle_for_longer(tmp_path: Path, seed: int) -> None:
    await _lives(tmp_path, seed, 5, (0, 2, 3))
