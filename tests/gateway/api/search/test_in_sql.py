"""Searches inside statements find the rows and scores of the API."""

from pathlib import Path

from tests.kit import documents
from tests.kit.documents import DOCS, found, searched


async def test_statements_search_as_the_api_does(tmp_path: Path) -> None:
    documents.write(tmp_path)
    async with searched(tmp_path, DOCS) as runtime:
        sql = "SELECT id, score FROM vector_search(docs, 'warm bread') ORDER BY score DESC, id"
        by_meaning = (await runtime.sql(sql)).json()
        assert by_meaning[0]["id"] == 3 and len(by_meaning) == 5
        sql = "SELECT id, score FROM text_search(docs, 'bread key', body) WHERE kind <> 'music'"
        by_words = (await runtime.sql(f"{sql} ORDER BY score DESC, id")).json()
        assert [each["id"] for each in by_words] == [3, 1, 2]
        fused = "SELECT id, fused_score FROM rrf(vector_search(docs, 'warm bread'), "
        fused += "text_search(docs, 'warm bread', body), join_key => 'id') ORDER BY 2 DESC LIMIT 1"
        (best,) = (await runtime.sql(fused)).json()
        (same,) = await found(runtime, "warm bread", limit=1)
        assert (best["id"], best["fused_score"]) == (3, same["_score"])
        where = "id IN (SELECT id FROM text_search(docs, '+piano keys', body))"
        results = await found(runtime, "warm bread", where=where)
        assert {each["primary_key"]["id"] for each in results} == {5}
        plan = (await runtime.sql("EXPLAIN SELECT id FROM vector_search(docs, 'bread')")).text
        assert "index=none, because='docs' is not an accelerated dataset" in plan
