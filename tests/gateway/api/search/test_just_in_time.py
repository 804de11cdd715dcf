"""Texts without vectors are embedded by the search, with the real built-in models."""

from pathlib import Path

from tests.kit.documents import found
from tests.kit.runtime import running

MANIFEST = """
    datasets:
      - from: file:notes.csv
        name: notes
        columns:
          - {name: body, embeddings: [{from: 'builtin:wordllama', row_id: id}]}
    views:
      - name: short
        sql: SELECT id, body AS text FROM notes WHERE length(body) < 40
        columns:
          - {name: text, embeddings: [{from: 'builtin:wordllama', row_id: id}]}
"""


async def test_plain_files_are_searched_by_meaning(tmp_path: Path) -> None:
    rows = ["id,body", "1,The cat sleeps on the sofa", "2,Stock markets fell sharply today", "3,",
            "4,A kitten is playing with a ball of wool in the garden"]  # fmt: skip
    (tmp_path / "notes.csv").write_text("\n".join(rows) + "\n")
    async with running(tmp_path, MANIFEST) as runtime:
        results = await found(runtime, "young cats", "notes", additional_columns=["id"])
        assert [each["primary_key"]["id"] for each in results][-1] == 2
        assert len(results) == 3
        assert results[0]["_score"] > results[-1]["_score"] + 0.1
        (best, other) = await found(runtime, "falling share prices", "short")
        assert best["primary_key"] == {"id": 2}
        assert best["matches"] == {"text": ["Stock markets fell sharply today"]}
        same = await found(runtime, "falling share prices", "notes", where="length(body) < 40")
        assert [each["_score"] for each in same] == [best["_score"], other["_score"]]
