"""The tables that are searched, and the response about their rows."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit import documents
from tests.kit.documents import VECTORS, found, searched
from tests.kit.word_embedder import vector

_OTHER = (
    (3, "Other bread", "Butter on warm bread.", "food"),
    (9, "Other keys", "Rotate the access key.", "ops"),
)


async def test_several_datasets_are_one_list(tmp_path: Path) -> None:
    documents.write(tmp_path)
    documents.write(tmp_path, "more", _OTHER)
    more = VECTORS.replace("datasets:", "").replace("docs", "more")
    async with searched(tmp_path, VECTORS + more) as runtime:
        results = await found(runtime, "warm bread", "more", "docs", "docs", limit=4)
        ranks = [(each["dataset"], each["primary_key"]["id"]) for each in results]
        assert ranks[:2] == [("more", 3), ("docs", 3)]
        assert results[0]["_score"] == results[1]["_score"]
        assert len(ranks) == len(set(ranks)) == 4
        again = await found(runtime, "warm bread", "docs", "more", limit=4)
        assert [each["dataset"] for each in again[:2]] == ["docs", "more"]


async def test_columns_are_told_as_data_or_as_key(tmp_path: Path) -> None:
    documents.write(tmp_path)
    async with searched(tmp_path, VECTORS) as runtime:
        columns = ["title", "id", "kind", "title"]
        results = await found(runtime, "piano keys", limit=1, additional_columns=columns)
        assert results[0]["data"] == {"title": "Keys of a piano", "kind": "music"}
        assert results[0]["primary_key"] == {"id": 5}
        assert list(results[0]) == ["matches", "data", "primary_key", "dataset", "_score"]


async def test_values_are_told_as_by_sql(tmp_path: Path) -> None:
    bodies = ["bread", "butter"]
    table = pa.table(
        {
            "a b": pa.array([1, None], pa.decimal128(9, 2)),
            'quo"te': pa.array([b"\x00\xff", None], pa.binary()),
            "at": pa.array([0, 10**15], pa.timestamp("us", "UTC")),
            "score": [0.5, None],
            "nested": [{"x": [1, 2]}, None],
            "body": bodies,
            "body_embedding": [vector(each).tolist() for each in bodies],
        }
    )
    pq.write_table(table.cast(table.schema.set(6, pa.field("body_embedding", pa.list_(
        pa.float32())))), tmp_path / "docs.parquet")  # fmt: skip
    manifest = VECTORS.replace(", row_id: id", "")
    columns = ["a b", 'quo"te', "at", "score", "nested"]
    async with searched(tmp_path, manifest) as runtime:
        results = await found(runtime, "bread", additional_columns=columns)
        assert "primary_key" not in results[0]
        listed = ", ".join('"' + each.replace('"', '""') + '"' for each in columns)
        rows = (await runtime.sql(f"SELECT {listed} FROM docs ORDER BY body")).json()
        assert [each["data"] for each in results] == rows
        assert {type(each["_score"]) for each in results} == {float}


async def test_numbers_keep_all_their_digits(tmp_path: Path) -> None:
    keys = [Decimal(10**30 + 1), Decimal(10**30 + 2)]
    table = pa.table(
        {
            "key": pa.array(keys, pa.decimal128(38, 0)),
            "price": pa.array([Decimal("0.12345678901234567890")] * 2, pa.decimal128(38, 20)),
            "body": ["warm bread", "butter"],
            "body_embedding": [vector(each).tolist() for each in ("warm bread", "butter")],
        }
    )
    pq.write_table(table, tmp_path / "docs.parquet")
    manifest = VECTORS.replace("row_id: id", "row_id: key")
    async with searched(tmp_path, manifest) as runtime:
        body = {"text": "bread", "datasets": ["docs"], "additional_columns": ["price"]}
        text = (await runtime.api.post("/v1/search", json=body)).text
        assert f'"primary_key":{{"key":{keys[0]}}}' in text
        assert text.count('"data":{"price":0.12345678901234567890}') == 2


async def test_a_row_id_that_is_no_column(tmp_path: Path) -> None:
    documents.write(tmp_path)
    manifest = VECTORS.replace("row_id: id", "row_id: [kind, nothing]")
    manifest += """
    views: [{name: renamed, sql: 'SELECT body, body_embedding, kind AS k FROM docs'}]
"""
    async with searched(tmp_path, manifest) as runtime:
        asked = {"text": "bread", "datasets": ["docs"]}
        answer = await runtime.api.post("/v1/search", json=asked)
        assert answer.status_code == 400
        assert "'docs' has `row_id` 'nothing', a column that it does not have" in answer.text
        # A view need not pass the key on.
        assert "primary_key" not in (await found(runtime, "bread", "renamed"))[0]


async def test_views_pass_searched_columns_on(tmp_path: Path) -> None:
    documents.write(tmp_path)
    views = """
    views:
      - name: food
        sql: SELECT id AS number, id, body, body_embedding FROM docs WHERE kind = 'food'
      - name: aliased
        sql: SELECT id, body AS text, body_embedding AS text_embedding FROM docs
        columns: [{name: text, embeddings: [{from: 'builtin:minilm', row_id: id}]}]
      - {name: bare, sql: 'SELECT id, body FROM docs'}
"""
    async with searched(tmp_path, VECTORS + views) as runtime:
        results = await found(runtime, "warm bread", "food", additional_columns=["number"])
        assert [(each["primary_key"], each["data"]) for each in results] == [
            ({"id": 3}, {"number": 3}),
            ({"id": 2}, {"number": 2}),
        ]
        (best,) = await found(runtime, "warm bread", "aliased", limit=1)
        assert best["matches"] == {"text": ["Butter on warm bread."]}
        body = {"text": "bread", "datasets": ["bare"]}
        answer = await runtime.api.post("/v1/search", json=body)
        assert (answer.status_code, "cannot be searched" in answer.text) == (400, True)


async def test_names_are_found_as_in_sql(tmp_path: Path) -> None:
    documents.write(tmp_path)
    manifest = VECTORS.replace("name: docs", "name: sales.Docs", 1)
    async with searched(tmp_path, manifest) as runtime:
        for name in ("sales.docs", "SALES.DOCS", '"sales"."docs"', "caraway.sales.docs"):
            (best,) = await found(runtime, "warm bread", name, limit=1, where="docs.id = 3")
            assert best["dataset"] == "sales.docs"
