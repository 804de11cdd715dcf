"""Searches of accelerated datasets use indexes, and find what searches without them find."""

from functools import partial
from pathlib import Path
from typing import Any

from tests.kit import documents
from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.documents import DOCS, found, searched, use
from tests.kit.runtime import Running
from tests.kit.word_embedder import WordEmbedder

ACCELERATED = f"{DOCS}        acceleration: {{enabled: true}}\n"
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("warm bread", {}),
    ("word1 bread word4", {"limit": 30, "additional_columns": ["kind", "title"]}),
    ("word3", {"where": "kind = 'even' AND id IN (SELECT id FROM docs WHERE id < 50)"}),
    ("word2 word6", {"where": "docs.id % 3 = 0", "keywords": ["+word2 -word5"], "limit": 7}),
    ("zebra", {"keywords": ["zebra"], "where": "id < 0"}),
)


CHANGED = """
      - from: cdc:changed
        name: changed
        access: read_write
        columns: [{name: id, type: bigint}, {name: body, type: text, full_text_search: {}}]
        acceleration: {enabled: true, refresh_mode: changes, primary_key: id}
"""


async def is_loaded(runtime: Running) -> bool:
    answer = await runtime.api.get("/v1/datasets", params={"status": "true"})
    return all(each["status"] == "ready" for each in answer.json())


async def check_what_is_kept(runtime: Running) -> None:
    await eventually(partial(is_loaded, runtime), "loaded datasets")

    async def status(name: str = "docs", **fields: Any) -> Any:
        body = {"text": "bread", "datasets": [name], "limit": 2, **fields}
        answer = await runtime.api.post("/v1/search", json=body)
        assert answer.status_code == 200, answer.text
        return answer.headers.get("search-results-cache-status")

    assert [await status(where="id < 4") for _ in range(2)] == ["MISS", "HIT"]
    assert [await status(where="random() < 2") for _ in range(2)] == [None, None]
    assert [await status(where="now() > '2020-01-01'") for _ in range(2)] == [None, None]
    written = await runtime.api.post("/v1/sql", json={"sql": "INSERT INTO changed VALUES (1, 'a')"})
    assert written.status_code == 200, written.text
    assert await status("changed") is None
    # Other datasets than the one with changes.
    assert [await status() for _ in range(2)] == ["MISS", "HIT"]


async def test_answers_that_hold_are_kept(tmp_path: Path) -> None:
    documents.write(tmp_path)
    caching = "    runtime: {caching: {search_results: {item_ttl: 1h}}}\n"
    async with searched(tmp_path, caching + ACCELERATED + CHANGED) as runtime:
        await check_what_is_kept(runtime)


async def test_answers_of_clusters_that_hold_are_kept(tmp_path: Path) -> None:
    documents.write(tmp_path)
    caching = "    runtime: {caching: {search_results: {item_ttl: 1h}}}\n"
    async with clustered(tmp_path, caching + ACCELERATED + CHANGED, executors=2) as cluster:
        use(cluster.runtime, WordEmbedder())
        await check_what_is_kept(cluster.runtime)


async def test_an_accelerated_dataset_gives_the_same_results(tmp_path: Path) -> None:
    rows = [
        (
            n,
            f"t{n}",
            None if n % 13 == 5 else f"word{n % 7} word{n % 5} warm bread",
            "even odd".split()[n % 2],
        )
        for n in range(150)
    ]
    results: list[Any] = []
    for manifest in (DOCS, ACCELERATED):
        folder = tmp_path / str(len(results))
        folder.mkdir()
        documents.write(folder, rows=rows)
        async with searched(folder, manifest) as runtime:
            await eventually(partial(is_loaded, runtime), "a loaded dataset")
            results.append([await found(runtime, text, **more) for text, more in REQUESTS])
    assert results[0] == results[1]
    assert [len(each) > 0 for each in results[1]] == [True, True, True, True, False]
