"""Vectors that are made when rows are loaded, over a real engine and a provider."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_acceleration.versions.making import VersionMaker
from caraway_assist.embeddings.service import Embeddings
from caraway_core import manifest as manifests
from caraway_core.errors import DatasetDamagedError, OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_core.protocols.embedding import Embedder
from caraway_engine.execution.contexts import CALLING_PARTITIONS, CALLING_ROWS
from tests.acceleration.embedded import (
    ROWS,
    dataset,
    manifest,
    provider,
    refreshed,
    rows,
    run_with,
    texts,
)
from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.json_provider import (
    JsonProvider,
    ProviderAnswer,
    ProviderRequest,
    json_provider,
    openai_embeddings,
)
from tests.kit.runtime import running

__all__ = ["provider"]


async def test_texts_have_vectors_and_a_refresh_embeds_what_is_new(
    tmp_path: Path, provider: JsonProvider
) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    text = manifest(provider, dataset("t", "acceleration: {primary_key: id}"))
    async with running(tmp_path, text) as runtime:
        found = await rows(runtime, "SELECT id, body, body_embedding AS v FROM t ORDER BY id")
        assert [row["v"] and row["v"][0] for row in found] == [1.0, 3.0, None, 1.0]
        assert texts(provider) == ["a", "bbb"]
        # The vectors are those of the version, not ones that this process still remembers.
        runtime.services.embeddings._loaded.recent._found.clear()
        (tmp_path / "a.csv").write_text("id,body\n1,a\n2,changed\n3,new\n")
        await refreshed(runtime)
        found = await rows(runtime, "SELECT id, body_embedding AS v FROM t ORDER BY id DESC")
        assert [row["v"][0] for row in found] == [3.0, 7.0, 1.0]
        assert texts(provider) == ["changed", "new"]


@pytest.mark.parametrize("executors", [0, 2])
async def test_rows_are_counted_while_they_are_embedded(tmp_path: Path, executors: int) -> None:
    may_end, asked = threading.Event(), 0
    # Each partition holds the batch that waits, one at hand, and one on its way.
    most = 4 * CALLING_PARTITIONS * CALLING_ROWS * max(1, executors)
    count = 2 * most

    def answer(request: ProviderRequest) -> ProviderAnswer:
        nonlocal asked
        asked += len(request.body["input"])
        if asked > most:
            may_end.wait(60)
        return openai_embeddings(request)

    lines = "".join(f"{number},text {number}\n" for number in range(count))
    (tmp_path / "a.csv").write_text(f"id,body\n{lines}")
    with json_provider(answer) as provider:
        text = manifest(provider, dataset("t", "acceleration: {enabled: true}"))
        async with run_with(tmp_path, text, executors) as runtime:
            try:

                async def look() -> dict[str, Any]:
                    found = (await runtime.api.get("/v1/datasets/t/acceleration")).json()
                    refresh = found.get("refresh", {})
                    return refresh if refresh.get("rows") else {}

                found = await eventually(look, "the rows that were embedded are counted")
                assert 0 < found["rows"] < count and found["rows_per_second"] > 0, found
                (entry,) = (await runtime.api.get("/v1/datasets?status=true")).json()
                assert entry["status"] == "initializing"
                assert entry["progress"].startswith(f"{found['rows']:,} rows, ")
                page = (await runtime.metrics.get("/metrics")).text
                name = "dataset_acceleration_refresh_rows"
                assert f'{name}{{dataset="t"}} {found["rows"]}.0' in page
                assert f'{name}_per_second{{dataset="t"}}' in page
            finally:
                may_end.set()
            assert await rows(runtime, "SELECT count(body_embedding) AS n FROM t") == [{"n": count}]
            (entry,) = (await runtime.api.get("/v1/datasets?status=true")).json()
            assert entry["progress"] is None


async def test_chunks_have_vectors_and_places(tmp_path: Path, provider: JsonProvider) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,one two three\n2,\n3,four\n")
    more = ", chunking: {enabled: true, target_chunk_size: 8}"
    text = manifest(provider, dataset("t", "acceleration: {enabled: true}", more=more))
    async with running(tmp_path, text) as runtime:
        one, two, three = await rows(runtime, "SELECT * FROM t ORDER BY id")
        assert [vector[0] for vector in one["body_embedding"]] == [7.0, 5.0]
        assert one["body_offset"] == [[0, 7], [8, 13]]
        assert (two["body_embedding"], two["body_offset"]) == (None, None)
        assert (three["body_embedding"][0][0], three["body_offset"]) == (4.0, [[0, 4]])
        assert texts(provider) == ["four", "one two", "three"]
        runtime.services.embeddings._loaded.recent._found.clear()
        (tmp_path / "a.csv").write_text("id,body\n1,one two three\n2,six\n")
        await refreshed(runtime)
        one, two = await rows(runtime, "SELECT *, 1 AS n FROM t ORDER BY id")
        assert (one["body_offset"], two["body_offset"]) == ([[0, 7], [8, 13]], [[0, 3]])
        assert texts(provider) == ["six"]


async def test_appended_rows_get_vectors(tmp_path: Path, provider: JsonProvider) -> None:
    (tmp_path / "a.csv").write_text("at,body\n1,a\n2,bb\n")
    keys = ("time_column: at", "time_format: unix_seconds", "acceleration: {refresh_mode: append}")
    async with running(tmp_path, manifest(provider, dataset("t", *keys))) as runtime:
        assert len(await rows(runtime, "SELECT * FROM t")) == 2
        assert texts(provider) == ["a", "bb"]
        runtime.services.embeddings._loaded.recent._found.clear()
        (tmp_path / "a.csv").write_text("at,body\n1,a\n2,bb\n3,ccc\n4,a\n")
        await refreshed(runtime)
        found = await rows(runtime, "SELECT body_embedding AS v FROM t ORDER BY at")
        assert [row["v"][0] for row in found] == [1.0, 2.0, 3.0, 1.0]
        assert texts(provider) == ["ccc"]


async def test_vectors_of_the_source_are_kept(tmp_path: Path, provider: JsonProvider) -> None:
    vectors = pa.array([None, [1.0, 2.0, 3.0, 4.0]], pa.list_(pa.float32(), 4))
    table = pa.table({"id": [1, 2], "body": ["a", "b"], "body_embedding": vectors})
    pq.write_table(table, tmp_path / "a.parquet")
    for name, column in (("b", pa.array([1, 2])), ("c", pa.array([None, [1.0, 2.0]]))):
        other = table.set_column(2, "body_embedding", column)
        pq.write_table(other, tmp_path / f"{name}.parquet")
    on = "acceleration: {enabled: true}"
    text = manifest(
        provider,
        dataset("t", on, source="file:a.parquet"),
        dataset("u", on, source="file:b.parquet"),
        dataset("w", on, source="file:c.parquet"),
    )
    async with running(tmp_path, text) as runtime:
        found = await rows(runtime, "SELECT body_embedding AS v FROM t ORDER BY id")
        assert [row["v"] for row in found] == [None, [1.0, 2.0, 3.0, 4.0]]
        assert texts(provider) == []

        async def have_failed() -> bool:
            listed = (await runtime.api.get("/v1/datasets?status=true")).json()
            said = " ".join(each["error_message"] or "" for each in listed)
            return "of its source is int64" in said and "have 2 dimensions, but those" in said

        await eventually(have_failed, "the wrong vectors are told")


async def test_a_provider_that_fails_leaves_the_version(
    tmp_path: Path, provider: JsonProvider
) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    text = manifest(provider, dataset("t", "acceleration: {refresh_retry_enabled: false}"))
    async with running(tmp_path, text) as runtime:
        assert len(await rows(runtime, "SELECT * FROM t")) == 4

        def refuse(request: ProviderRequest) -> ProviderAnswer:
            return ProviderAnswer({}, 429, {"retry-after": "100"})

        provider.answer = refuse
        (tmp_path / "a.csv").write_text("id,body\n9,other\n")
        with pytest.raises(Exception, match="the provider limits the rate"):
            await refreshed(runtime)
        assert len(await rows(runtime, "SELECT *, 1 AS n FROM t")) == 4
        status = (await runtime.api.get("/v1/datasets/t/acceleration")).json()
        assert "the provider limits the rate" in str(status)
        provider.answer = openai_embeddings
        await refreshed(runtime)
        (row,) = await rows(runtime, "SELECT *, 2 AS n FROM t")
        assert row["body_embedding"][0] == 5.0


async def test_the_first_load_waits_for_a_model_that_is_loading(
    tmp_path: Path, provider: JsonProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    wanted, settled = threading.Event(), Embeddings.settled_embedder

    async def noted(self: Embeddings, name: str) -> Embedder:
        wanted.set()
        return await settled(self, name)

    def late(request: ProviderRequest) -> ProviderAnswer:
        assert wanted.wait(60), "no load asked for the model"
        return openai_embeddings(request)

    monkeypatch.setattr(Embeddings, "settled_embedder", noted)
    provider.answer = late
    text = manifest(provider, dataset("t", "acceleration: {refresh_retry_enabled: false}"))
    async with running(tmp_path, text) as runtime:
        assert len(await rows(runtime, "SELECT * FROM t")) == 4


async def test_another_model_makes_vectors_anew_while_the_old_ones_are_read(
    tmp_path: Path, provider: JsonProvider
) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    text = manifest(provider, dataset("t", "acceleration: {primary_key: id}"))
    async with running(tmp_path, text) as runtime:
        sql = "SELECT body_embedding AS v FROM t WHERE id = 1"
        assert (await rows(runtime, sql))[0]["v"] == [1.0, 1.0, 0.0, 0.0]

        def longer(request: ProviderRequest) -> ProviderAnswer:
            request.body["dimensions"] = 6
            return openai_embeddings(request)

        provider.answer = longer
        path = tmp_path / "caraway.yaml"
        path.write_text(path.read_text().replace("openai:x", "openai:y"))
        loaded = manifests.load(path)
        await runtime.services.catalog.apply(loaded, manifests.build_resolver(loaded, {}))
        number = 0

        async def is_made() -> bool:
            nonlocal number
            number += 1  # Answers are cached for a second.
            found = await runtime.sql(f"{sql} AND {number} > 0")
            assert found.status_code == 200
            return len(found.json()[0]["v"]) == 6

        await eventually(is_made, "the vectors of the new model")
        assert {each.body["model"] for each in provider.requests} == {"x", "y"}


async def test_views_have_vectors(tmp_path: Path, provider: JsonProvider) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    text = manifest(provider, "  - {from: 'file:a.csv', name: t}") + (
        "\nviews:\n  - name: v\n    sql: SELECT id, body FROM t WHERE id < 3\n"
        "    acceleration: {enabled: true}\n"
        "    columns: [{name: body, embeddings: [{from: m}]}]"
    )
    async with running(tmp_path, text) as runtime:
        found = await rows(runtime, "SELECT body_embedding AS v FROM v ORDER BY id")
        assert [row["v"][0] for row in found] == [1.0, 3.0]


async def test_executors_of_a_cluster_make_the_vectors(
    tmp_path: Path, provider: JsonProvider
) -> None:
    lines = [f"{number},{'x' * (number % 50 + 1)}" for number in range(400)]
    (tmp_path / "a.csv").write_text("\n".join(("id,body", *lines, "")))
    text = manifest(provider, dataset("t", "acceleration: {partition_by: 'bucket(4, id)'}"))
    async with clustered(tmp_path, text) as cluster:
        sql = "SELECT count(*) AS n FROM t WHERE body_embedding[1] = char_length(body)"
        assert await rows(cluster.runtime, sql) == [{"n": 400}]
        asked = texts(provider)
        assert set(asked) == {"x" * length for length in range(1, 51)}
        (tmp_path / "a.csv").write_text("\n".join(("id,body", *lines[:200], "999,new", "")))
        await refreshed(cluster.runtime)
        sql = "SELECT count(*) AS n FROM t WHERE body_embedding[1] = char_length(body) AND 1 = 1"
        assert await rows(cluster.runtime, sql) == [{"n": 201}]
        assert set(texts(provider)) == {"new"}
        plan = await cluster.runtime.sql("EXPLAIN SELECT embed(body, 'm') FROM t")
        assert "distributed" in plan.text
        found = await rows(cluster.runtime, "SELECT embed(body, 'm') AS v FROM t WHERE id = 999")
        assert found[0]["v"][0] == 3.0


@pytest.mark.parametrize(
    "error", [OutOfMemoryQueryError("too large"), DatasetDamagedError(TableName("t"))]
)
async def test_vectors_are_made_anew_where_the_known_ones_cannot_be_read(
    tmp_path: Path, provider: JsonProvider, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    make, asked = VersionMaker.make, []

    async def short(self: VersionMaker, name: TableName, sql: str, *args: Any, **more: Any) -> Any:
        asked.append("LEFT JOIN" in sql)
        if "LEFT JOIN" in sql:
            raise error
        return await make(self, name, sql, *args, **more)

    monkeypatch.setattr(VersionMaker, "make", short)
    text = manifest(provider, dataset("t", "acceleration: {primary_key: id}"))
    async with running(tmp_path, text) as runtime:
        assert len(await rows(runtime, "SELECT * FROM t")) == 4
        (tmp_path / "a.csv").write_text("id,body\n1,a\n9,new\n")
        await refreshed(runtime)
        found = await rows(runtime, "SELECT body_embedding AS v FROM t ORDER BY id")
        assert [row["v"][0] for row in found] == [1.0, 3.0]
        assert asked == [False, True, False]
