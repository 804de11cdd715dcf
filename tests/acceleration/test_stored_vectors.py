"""Vectors outlive the versions and datasets that they were made for, in the result store."""

import asyncio
from pathlib import Path

from caraway_core import manifest as manifests
from tests.acceleration.embedded import (
    ROWS,
    dataset,
    manifest,
    provider,
    refreshed,
    rows,
    texts,
)
from tests.kit.cluster_runtime import clustered
from tests.kit.json_provider import JsonProvider
from tests.kit.runtime import Running, running

__all__ = ["provider"]
ON = "acceleration: {primary_key: id}"


def write(runtime: Running) -> None:
    """Write the waiting vectors, and clear those in memory."""
    loaded = runtime.services.embeddings._loaded
    loaded.recent._found.clear()
    ((_, cache),) = loaded._stored
    assert cache is not None
    cache.write()
    cache._looked_s.clear()


async def test_a_text_that_comes_back_is_not_embedded_again(
    tmp_path: Path, provider: JsonProvider
) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    async with running(tmp_path, manifest(provider, dataset("t", ON))) as runtime:
        assert len(await rows(runtime, "SELECT * FROM t")) == 4
        assert texts(provider) == ["a", "bbb"]
        for content, new in (("id,body\n1,new\n", ["new"]), (ROWS, [])):
            await asyncio.to_thread(write, runtime)
            (tmp_path / "a.csv").write_text(content)
            await refreshed(runtime)
            assert texts(provider) == new
        found = await rows(runtime, "SELECT body_embedding AS v FROM t ORDER BY id")
        assert [row["v"] and row["v"][0] for row in found] == [1.0, 3.0, None, 1.0]


async def test_other_datasets_and_later_processes_share_vectors(
    tmp_path: Path, provider: JsonProvider
) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    text = manifest(provider, dataset("t", ON))
    async with running(tmp_path, text) as runtime:
        assert len(await rows(runtime, "SELECT * FROM t")) == 4
        assert texts(provider) == ["a", "bbb"]
        await asyncio.to_thread(write, runtime)
    # Another name, and settings with which a version would not be taken over.
    text = manifest(provider, dataset("u", "acceleration: {sort_by: [body]}"), dataset("v", ON))
    async with running(tmp_path, text) as runtime:
        for name in ("u", "v"):
            found = await rows(runtime, f"SELECT body_embedding AS v FROM {name} ORDER BY id")
            assert [row["v"] and row["v"][0] for row in found] == [1.0, 3.0, None, 1.0]
        assert texts(provider) == []
        assert runtime.services.embeddings.stored_counts[1] >= 2


async def test_a_model_that_comes_back_finds_its_vectors(
    tmp_path: Path, provider: JsonProvider
) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    async with running(tmp_path, manifest(provider, dataset("t", ON))) as runtime:
        assert len(await rows(runtime, "SELECT * FROM t")) == 4
        path = tmp_path / "caraway.yaml"
        asked = [texts(provider)]
        for before, after in (("x", "y"), ("y", "x")):
            await asyncio.to_thread(write, runtime)
            path.write_text(path.read_text().replace(f"openai:{before}", f"openai:{after}"))
            loaded = manifests.load(path)
            await runtime.services.catalog.apply(loaded, manifests.build_resolver(loaded, {}))
            await runtime.services.embeddings.wait_settled()
            await refreshed(runtime)
            asked.append(texts(provider))
        assert asked[0] == ["a", "bbb"] and set(asked[1]) >= {"a", "bbb"}
        assert not {"a", "bbb"} & set(asked[2])


async def test_executors_share_vectors(tmp_path: Path, provider: JsonProvider) -> None:
    lines = [f"{number},{'x' * (number % 50 + 1)}" for number in range(400)]
    (tmp_path / "a.csv").write_text("\n".join(("id,body", *lines, "")))
    keys = "acceleration: {partition_by: 'bucket(4, id)'}"
    text = manifest(provider, dataset("t", keys), dataset("u", keys))
    async with clustered(tmp_path, text) as cluster:
        assert cluster.runtime.services.embeddings.catalog.specs[0].stored is not None
        for name in ("t", "u"):
            sql = f"SELECT count(*) AS n FROM {name} WHERE body_embedding[1] = char_length(body)"
            assert await rows(cluster.runtime, sql) == [{"n": 400}]
