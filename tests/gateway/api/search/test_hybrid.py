"""Searches by words, and by words and meaning."""

from pathlib import Path

from tests.kit import documents
from tests.kit.documents import DOCS, found, searched

WORDS = """
    datasets:
      - from: file:docs.parquet
        name: docs
        columns:
          - {name: title, full_text_search: {enabled: true, row_id: id}}
          - {name: body, full_text_search: {enabled: true}}
"""


async def test_words_are_found_in_every_column(tmp_path: Path) -> None:
    documents.write(tmp_path)
    async with searched(tmp_path, WORDS) as runtime:
        results = await found(runtime, "bread keys", additional_columns=["kind"])
        assert [each["primary_key"]["id"] for each in results] == [3, 2, 5, 1]
        assert results[0]["matches"] == {
            "title": ["Bread and butter"],
            "body": ["Butter on warm bread."],
        }
        scores = [each["_score"] for each in results]
        assert scores == sorted(scores, reverse=True) and scores[-1] > 0
        assert await found(runtime, "zebra") == []
        assert await found(runtime, "!?") == []
        some = await found(runtime, "bread keys", where="kind = 'ops'")
        assert [(each["primary_key"]["id"], each["_score"]) for each in some] == [(1, scores[-1])]


async def test_keywords_take_the_place_of_the_text(tmp_path: Path) -> None:
    documents.write(tmp_path)
    async with searched(tmp_path, WORDS) as runtime:

        async def ids(**fields: object) -> list[int]:
            results = await found(runtime, "bread", **fields)
            return [each["primary_key"]["id"] for each in results]

        assert await ids() == [3, 2]
        assert await ids(keywords=["piano"]) == [5]
        assert await ids(keywords=["access key", "executors"]) == [1, 4]
        assert await ids(keywords=["key access"]) == []
        assert await ids(keywords=[]) == [3, 2]


async def test_two_ways_are_fused_by_rank(tmp_path: Path) -> None:
    documents.write(tmp_path)
    async with searched(tmp_path, DOCS) as runtime:
        results = await found(runtime, "warm bread")
        assert [each["primary_key"]["id"] for each in results][:2] == [3, 2]
        assert results[0]["_score"] == 1 / 61 + 1 / 61
        assert results[0]["matches"] == {"body": ["Butter on warm bread."]}
        assert len(results) == 5  # One has no text, and so no vector.
        # Words alone and meaning alone both count.
        by_words = await found(runtime, "warm bread", keywords=["piano"])
        assert by_words[0]["primary_key"] == {"id": 5}


async def test_a_smaller_limit_cuts_the_same_list(tmp_path: Path) -> None:
    rows = [(n, f"t{n}", f"word{n % 7} word{n % 5} bread", "k") for n in range(150)]
    documents.write(tmp_path, rows=rows)
    async with searched(tmp_path, DOCS) as runtime:
        most = await found(runtime, "word1 bread word4", limit=90)
        assert len(most) == 90
        for limit in (1, 7, 50):
            assert await found(runtime, "word1 bread word4", limit=limit) == most[:limit]


async def test_tables_of_two_ways_are_fused_too(tmp_path: Path) -> None:
    documents.write(tmp_path)
    documents.write(tmp_path, "more", [(9, "Bread", "bread", "food")])
    more = WORDS.replace("datasets:", "").replace("docs", "more")
    async with searched(tmp_path, DOCS + more) as runtime:
        results = await found(runtime, "warm bread", "more", "docs", limit=3)
        ranks = [(each["dataset"], each["primary_key"]["id"]) for each in results]
        assert ranks == [("docs", 3), ("docs", 2), ("more", 9)]


async def test_a_table_without_rows(tmp_path: Path) -> None:
    documents.write(tmp_path)
    view = "    views: [{name: none, sql: 'SELECT * FROM docs WHERE false'}]"
    async with searched(tmp_path, DOCS + view) as runtime:
        assert await found(runtime, "bread", "none") == []
