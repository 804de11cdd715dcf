"""The worked example of search finds what README and guide say that it finds."""

import shutil
from pathlib import Path
from typing import Any

from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "search.md").read_text()
QUESTION = "which machine has the rows when one dies?"


async def found(runtime: Running, **asked: Any) -> list[dict[str, Any]]:
    """Search the articles, as soon as they are loaded."""
    body = {"datasets": ["articles"], "additional_columns": ["title"], **asked}

    async def look() -> Any:
        answer = await runtime.api.post("/v1/search", json=body)
        return answer if answer.status_code != 503 else None

    answer = await eventually(look, "the articles are loaded")
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def test_the_example_finds_what_the_guide_shows(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "search" / "articles.ndjson", tmp_path)
    manifest = (ROOT / "examples" / "search" / "caraway.yaml").read_text()
    assert f"'{QUESTION}'" in GUIDE and f"'{QUESTION}'" in (ROOT / "README.md").read_text()
    async with running(tmp_path, manifest.partition("name: search\n")[2]) as runtime:
        for each in await found(runtime, text=QUESTION, limit=2):
            shown = (f"{each['_score']:.4f}", str(each["primary_key"]["id"]), each["data"]["title"])
            assert any(all(part in line for part in shown) for line in GUIDE.splitlines()), shown
        (answer,) = await found(
            runtime, text="my secret must not be in a file", limit=1, where="section = 'manifest'"
        )
        title = answer["data"]["title"]
        key = answer["primary_key"]["id"]
        assert f'"data":{{"title":"{title}"}},"primary_key":{{"id":{key}}}' in GUIDE
        assert f'"_score":{answer["_score"]:.4f}' in GUIDE
        first, *_ = await found(runtime, text="how do I change my password?", limit=3)
        assert first["data"]["title"] == "Keep passwords out of files"
