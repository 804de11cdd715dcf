"""Requests that are refused, and their messages; none of them ends the runtime."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from caraway_core.errors import ModelAwayError, ModelError
from tests.kit import documents
from tests.kit.documents import VECTORS, found, searched
from tests.kit.runtime import Running
from tests.kit.word_embedder import WordEmbedder

MANIFEST = f"""{VECTORS}
      - {{from: 'file:plain.csv', name: plain}}
    views:
      - {{name: bread, sql: "SELECT * FROM docs WHERE kind = 'food'"}}
      - {{name: counts, sql: "SELECT kind, count(*) AS n FROM docs GROUP BY kind"}}
"""
ASKED = {"text": "bread", "datasets": ["docs"]}


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Running]:
    documents.write(folder)
    (folder / "plain.csv").write_text("id,secret\n3,x\n4,y\n")
    async with searched(folder, MANIFEST) as runtime:
        yield runtime


async def refused(runtime: Running, status: int = 400, **fields: object) -> str:
    body = {name: value for name, value in {**ASKED, **fields}.items() if value is not ...}
    answer = await runtime.api.post("/v1/search", json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error"}
    return str(answer.json()["error"])


async def test_fields_out_of_bounds(tmp_path: Path) -> None:
    async with served(tmp_path) as runtime:
        assert "'text' must be a string" in await refused(runtime, text=...)
        assert "'text' must be a string" in await refused(runtime, text=7)
        assert "'text' is empty" in await refused(runtime, text=" \n")
        assert "more than 65536 bytes" in await refused(runtime, text="a" * (1 << 20))
        assert "names no dataset" in await refused(runtime, datasets=...)
        assert "names no dataset" in await refused(runtime, datasets=None)
        assert "names no dataset" in await refused(runtime, datasets=[])
        assert "array of strings" in await refused(runtime, datasets="docs")
        assert "array of strings" in await refused(runtime, datasets=[1])
        for limit in (0, -1, 1_001, 10_000):
            assert f"'limit' is {limit}; it must be from 1 to 1000" in await refused(
                runtime, limit=limit
            )
        for other in (True, "10", 1.5):
            assert "'limit' must be an integer" in await refused(runtime, limit=other)
        assert "'where' must be a string" in await refused(runtime, where=["a"])
        assert "array of strings" in await refused(runtime, keywords="bread")
        assert "array of strings" in await refused(runtime, additional_columns={"a": 1})
        assert "did you mean 'limit'?" in await refused(runtime, limits=3)
        assert "'keywords' are sought in columns with `full_text_search`" in await refused(
            runtime, keywords=["bread"]
        )


async def test_bodies_that_are_no_search(tmp_path: Path) -> None:
    async with served(tmp_path) as runtime:
        for body in (b"", b"[]", b'"bread"', b"{", b"\xff", b'{"text": "a", "text": "b"}'):
            answer = await runtime.api.post("/v1/search", content=body)
            assert answer.status_code == 400
            assert "the request body" in answer.json()["error"]


async def test_tables_that_cannot_be_searched(tmp_path: Path) -> None:
    async with served(tmp_path) as runtime:
        message = await refused(runtime, datasets=["dosc"])
        assert message == "no dataset or view 'dosc'; did you mean 'docs'?"
        for name in ("plain", "counts"):
            message = await refused(runtime, datasets=["docs", name])
            assert message.startswith(f"'{name}' cannot be searched; add `embeddings` or")
        assert "is not a table name" in await refused(runtime, datasets=["a.b.c.d"])
        assert "belongs to the runtime" in await refused(runtime, datasets=["runtime.task_history"])
        assert "belongs to the runtime" in await refused(runtime, datasets=["caraway_source.docs"])
        message = await refused(runtime, additional_columns=["titel"])
        assert message.startswith("'docs' has no column 'titel'; did you mean 'title'?")


_NONE = [
    ("id = 1; DROP TABLE docs", "remove the ';'"),
    ("id = 1) OR (1 = 1", "did not open"),
    ("id = $vector", "placeholder $vector"),
    ("DROP TABLE docs", "where: syntax error: Expected: ), found: TABLE at Line: 1, Column: 6"),
    (
        "where id IN ()",
        "where: syntax error: Expected: an expression, found: ) at Line: 1, Column: 14",
    ),
    ("id > 1\nAND", "where: syntax error: Expected: an expression, found: the end"),
    ("SELECT 1", "non-boolean predicate"),
    ("(INSERT INTO docs VALUES (1))", ""),
    ("id = 1 ORDER BY id", "syntax error"),
    ("id = 1 LIMIT 1", "syntax error"),
    ("count(*) > 1", ""),
    ("sum(id) > 1", ""),
    ("row_number() OVER () > 1", ""),
    ("id", ""),
    ("'text'", ""),
    ("nothing = 1", "column 'nothing' not found"),
    ("id IN (SELECT id FROM nowhere)", "table 'nowhere' not found"),
    ("id IN (SELECT id FROM caraway_source.docs)", "not found"),
    ("missing(id)", "missing"),
]


async def test_predicates_that_are_none(tmp_path: Path) -> None:
    async with served(tmp_path) as runtime:
        for where, message in _NONE:
            assert message in await refused(runtime, where=where), where
        assert await found(runtime, "bread")


_FILTERS = [
    ("kind = 'ops'", {1, 4}),
    ("WHERE kind = 'ops'", {1, 4}),
    ("where docs.kind = 'ops' -- those alone", {1, 4}),
    ("id IN (SELECT id FROM plain)", {3, 4}),
    ("EXISTS (SELECT 1 FROM plain WHERE plain.id = docs.id)", {3, 4}),
    ("id = (SELECT max(id) FROM plain)", {4}),
    ("length(body) < 30 AND (kind = 'food' OR kind = 'music')", {3, 5}),
    ("body IS NULL", set()),
    ("false", set()),
    ("", {1, 2, 3, 4, 5}),
]


async def test_predicates_are_filters_before(tmp_path: Path) -> None:
    async with served(tmp_path) as runtime:
        for where, expected in _FILTERS:
            results = await found(runtime, "warm bread", where=where)
            assert {each["primary_key"]["id"] for each in results} == expected, where
            some = await found(runtime, "warm bread", where=where, limit=1)
            assert some == results[:1]


async def test_models_that_are_away(tmp_path: Path) -> None:
    documents.write(tmp_path)
    model = WordEmbedder()
    async with searched(tmp_path, VECTORS, model) as runtime:
        model.error = ModelAwayError("model 'm' is loading", retry_after_s=7)
        answer = await runtime.api.post("/v1/search", json=ASKED)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
        assert answer.json() == {"error": "model 'm' is loading"}
        model.error = ModelError("the provider of model 'm' failed")
        assert await refused(runtime, 500) == "the provider of model 'm' failed"
        model.error = None
        assert await found(runtime, "bread")


async def test_readers_may_search(tmp_path: Path) -> None:
    documents.write(tmp_path)
    keys = "runtime: {auth: {api-key: {enabled: true, keys: ['reader', 'writer:rw']}}}"
    async with searched(tmp_path, f"    {keys}\n{VECTORS}") as runtime:
        answer = await runtime.api.post("/v1/search", json=ASKED)
        assert answer.status_code == 401
        for key in ("reader", "writer"):
            headers = {"x-api-key": key}
            answer = await runtime.api.post("/v1/search", json=ASKED, headers=headers)
            assert answer.status_code == 200
            assert answer.headers["search-results-cache-scope"] == "user"
            assert answer.headers["search-results-cache-status"] == "MISS"
            assert "Authorization" in answer.headers["vary"]
