"""Searches of accelerated datasets use indexes, and find what searches without them find."""

from pathlib import Path
from typing import Any

from tests.kit import documents
from tests.kit.deadlines import eventually
from tests.kit.documents import DOCS, found, searched
from tests.kit.runtime import Running

ACCELERATED = f"{DOCS}        acceleration: {{enabled: true}}\n"
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("warm bread", {}),
    ("word1 bread word4", {"limit": 30, "additional_columns": ["kind", "title"]}),
    ("word3", {"where": "kind = 'even' AND id IN (SELECT id FROM docs WHERE id < 50)"}),
    ("word2 word6", {"where": "docs.id % 3 = 0", "keywords": ["+word2 -word5"], "limit": 7}),
    ("zebra", {"keywords": ["zebra"], "where": "id < 0"}),
)


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

            async def is_loaded(runtime: Running = runtime) -> bool:
                answer = await runtime.api.get("/v1/datasets", params={"status": "true"})
                return all(each["status"] == "ready" for each in answer.json())

            await eventually(is_loaded, "a loaded dataset")
            results.append([await found(runtime, text, **more) for text, more in REQUESTS])
    assert results[0] == results[1]
    assert [len(each) > 0 for each in results[1]] == [True, True, True, True, False]
