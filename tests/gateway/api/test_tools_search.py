"""The tool `search`, and statements with searches, within the tables of their caller."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from caraway_ai.tools.protocol import ToolCaller
from caraway_core.errors import CarawayError, NotFoundError, QueryError
from caraway_core.ids import TableName
from tests.kit import documents
from tests.kit.documents import searched

MANIFEST = """
    datasets:
      - from: file:docs.parquet
        name: docs
        columns: [{name: body, full_text_search: {enabled: true, row_id: id}}]
      - from: file:docs.parquet
        name: secret
        columns: [{name: body, full_text_search: {enabled: true, row_id: id}}]
"""
LIMITED = ToolCaller(tables=frozenset({TableName("docs")}), trace_id="t", span_id="s")


async def test_a_search_is_a_tool(tmp_path: Path) -> None:
    documents.write(tmp_path)
    async with searched(tmp_path, MANIFEST) as runtime:
        listed = (await runtime.api.get("/v1/tools")).json()
        assert "search" in [tool["name"] for tool in listed]
        rows = (await runtime.sql("SELECT id, body FROM docs ORDER BY id LIMIT 1")).json()
        word = rows[0]["body"].split()[-1].strip(".")
        asked: dict[str, Any] = {"text": word, "datasets": ["docs"], "limit": 3}
        found = await runtime.api.post("/v1/tools/search", json=asked)
        direct = await runtime.api.post("/v1/search", json=asked)
        assert found.json()["results"] == direct.json()["results"] != []
        everywhere = await runtime.api.post("/v1/tools/search", json={"text": word, "limit": 9})
        assert {each["dataset"] for each in everywhere.json()["results"]} == {"docs", "secret"}

        box = runtime.services.tools.toolbox
        mine = await box.call("search", {"text": word, "limit": 9}, LIMITED)
        assert {each["dataset"] for each in mine["results"]} == {"docs"}
        with pytest.raises(NotFoundError, match="no table 'secret'"):
            await box.call("search", {"text": word, "datasets": ["secret"]}, LIMITED)
        condition = "id IN (SELECT id FROM secret)"
        with pytest.raises(QueryError, match="table 'secret' not found"):
            await box.call("search", {"text": word, "where": condition}, LIMITED)
        for sql in (
            f"SELECT * FROM text_search(secret, '{word}', body)",
            f"SELECT * FROM rrf(text_search(docs, '{word}', body), "
            f"text_search(secret, '{word}', body), join_key => 'id')",
        ):
            with pytest.raises(CarawayError) as caught:
                await box.call("sql", {"query": sql}, LIMITED)
            assert "secret" not in str(caught.value.message).replace("'secret' not found", "")
        sql = f"SELECT id FROM text_search(docs, '{word}', body) LIMIT 3"
        everything = replace(LIMITED, tables=None)
        expected = await box.call("sql", {"query": sql}, everything)
        assert expected
        assert await box.call("sql", {"query": sql}, LIMITED) == expected
