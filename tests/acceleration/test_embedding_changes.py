"""Vectors of rows that come as changes, over a real engine and a provider."""

import threading
from pathlib import Path

import pytest

from caraway_core import manifest as manifests
from caraway_core.ids import TableName
from tests.acceleration.embedded import (
    manifest,
    provider,
    rows,
)
from tests.kit.deadlines import eventually
from tests.kit.json_provider import (
    JsonProvider,
    ProviderAnswer,
    ProviderRequest,
    openai_embeddings,
)
from tests.kit.runtime import Running, running

__all__ = ["provider"]


async def test_changes_get_vectors(tmp_path: Path, provider: JsonProvider) -> None:
    columns = (
        "    columns: [{name: id, type: bigint}, {name: body, type: text, embeddings: "
        "[{from: m, chunking: {enabled: true, target_chunk_size: 4}}]}]"
    )
    text = manifest(
        provider, "  - from: cdc:t\n    name: t\n    access: read_write", columns,
        "    acceleration: {primary_key: id}",
    )  # fmt: skip
    async with running(tmp_path, text) as runtime:
        assert await rows(runtime, "SELECT * FROM t") == []
        event = {"op": "c", "after": {"id": 1, "body": "one two"}, "source": {"table": "t"}}
        answer = await runtime.api.post("/v1/datasets/t/cdc", json=event)
        assert answer.status_code == 200, answer.text
        (row,) = await rows(runtime, "SELECT *, 1 AS n FROM t")
        assert [vector[0] for vector in row["body_embedding"]] == [3.0, 3.0]
        assert row["body_offset"] == [[0, 3], [4, 7]]
        changed = await runtime.sql("UPDATE t SET body = 'four' WHERE id = 1")
        assert changed.status_code == 200, changed.text
        (row,) = await rows(runtime, "SELECT *, 2 AS n FROM t")
        assert row["body_offset"] == [[0, 4]] and row["body_embedding"][0][0] == 4.0
        inserted = await runtime.sql("INSERT INTO t (id, body) VALUES (2, 'six')")
        assert inserted.status_code == 200, inserted.text
        found = await rows(runtime, "SELECT body_embedding[1][1] AS n FROM t ORDER BY id")
        assert [row["n"] for row in found] == [4.0, 3.0]
        provider.answer = lambda request: ProviderAnswer({}, 401)
        failed = await runtime.api.post(
            "/v1/datasets/t/cdc",
            json={"op": "c", "after": {"id": 3, "body": "lost"}, "source": {"table": "t"}},
        )
        assert failed.status_code == 500 and "denied access" in failed.text
        assert len(await rows(runtime, "SELECT id FROM t")) == 2


@pytest.mark.parametrize("more", ["", ", chunking: {enabled: true, target_chunk_size: 4}"])
async def test_another_model_makes_the_vectors_of_changes_again(
    tmp_path: Path, provider: JsonProvider, more: str
) -> None:
    embedded = f"embeddings: [{{from: m{more}}}]"
    text = manifest(
        provider, "  - from: cdc:t\n    name: t\n    access: read_write",
        f"    columns: [{{name: id, type: bigint}}, {{name: body, type: text, {embedded}}}]",
        "    acceleration: {primary_key: id}",
    )  # fmt: skip
    number = 0

    async def lengths(runtime: Running) -> list[int]:
        nonlocal number
        number += 1  # Answers are cached for a second.
        found = await runtime.sql(f"SELECT body_embedding AS v FROM t WHERE {number} > 0")
        assert found.status_code == 200, found.text
        vectors = [row["v"] for row in found.json()]
        return sorted(len(each[0] if more else each) for each in vectors if each is not None)

    async def changed(runtime: Running, sql: str) -> None:
        answer = await runtime.sql(sql)
        assert answer.status_code == 200, answer.text

    async with running(tmp_path, text) as runtime:
        assert await rows(runtime, "SELECT * FROM t") == []
        await changed(runtime, "INSERT INTO t (id, body) VALUES (1, 'one'), (2, 'two'), (3, NULL)")
        assert await lengths(runtime) == [4, 4]
        # The statement reads the log, so it is planned at its position.
        (row,) = await rows(runtime, "SELECT embed(body, 'm') AS v FROM t WHERE id = 1")
        assert row["v"][0] == 3.0
        kept = runtime.services.accelerations._kept[TableName("t")]

        async def is_noted() -> bool:
            held = kept.current.ours
            return held is not None and held.version.sql.startswith("-- vectors by")

        await eventually(is_noted, "the model is noted")
        before = kept.current.ours
        assert before is not None and before.version.log, "nothing was made again"

        may_answer = threading.Event()

        def longer(request: ProviderRequest) -> ProviderAnswer:
            if len(request.body["input"]) > 1:
                assert may_answer.wait(60)
            request.body["dimensions"] = 6
            return openai_embeddings(request)

        provider.answer = longer
        path = tmp_path / "caraway.yaml"
        path.write_text(path.read_text().replace("openai:x", "openai:y"))
        loaded = manifests.load(path)
        await runtime.services.catalog.apply(loaded, manifests.build_resolver(loaded, {}))

        async def is_asked() -> bool:
            return any(len(each.body["input"]) > 1 for each in provider.requests
                       if each.body["model"] == "y")  # fmt: skip

        await eventually(is_asked, "the new model is asked for all texts")
        assert await lengths(runtime) == [4, 4]
        await changed(runtime, "INSERT INTO t (id, body) VALUES (4, 'new')")
        assert await lengths(runtime) == [4, 4, 6]
        may_answer.set()

        async def is_made() -> bool:
            return await lengths(runtime) == [6, 6, 6]

        await eventually(is_made, "the vectors of the new model")
        found = await rows(runtime, "SELECT id, body FROM t ORDER BY id")
        assert [row["body"] for row in found] == ["one", "two", None, "new"]
