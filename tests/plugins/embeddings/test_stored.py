"""Vectors in a result store: found again by every process, and never more than a saving."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caraway_core.errors import ResultStoreError
from caraway_core.protocols.embedding import EmbedderSpec, StoredVectorsPlace, mark_of
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace
from caraway_plugins.embeddings import stored, stored_segments
from caraway_plugins.embeddings.loaded import LoadedEmbedders
from caraway_plugins.embeddings.recent import RecentVectors
from caraway_plugins.embeddings.stored import StoredVectors
from caraway_plugins.stores.folder import FolderResultStore
from tests.kit.embedders import FakeEmbedder

MIB = 1024 * 1024


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Callable[..., StoredVectors]:
    """Open the cache as another process does."""

    def open_(most_bytes: int = MIB) -> StoredVectors:
        made = StoredVectors(FolderResultStore(tmp_path), most_bytes, clock, clock, 3600.0)
        made.close()  # Tests write themselves, so no thread does.
        return made

    return open_


def embed(cache: StoredVectors, model: FakeEmbedder, *texts: str) -> list[list[str]]:
    """Embed texts, check their vectors, and return the calls of the model."""
    before = len(model.calls)
    found = cache.over(model).embed(texts).vectors
    assert found.to_pylist() == [[len(text), 1.0] for text in texts]
    return model.calls[before:]


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.arrow"))


def test_other_processes_find_what_one_made(opened: Callable[..., StoredVectors]) -> None:
    first, model = opened(), FakeEmbedder()
    assert embed(first, model, "a", "bb") == [["a", "bb"]]
    assert embed(first, model, "bb", "a") == []  # It waits to be written.
    first.write()
    assert embed(first, model, "bb", "a") == []
    second = opened()
    assert embed(second, model, "bb", "ccc", "a") == [["ccc"]]
    assert (second.requests, second.hits) == (3, 2)
    second.write()
    assert embed(opened(), model, "a", "bb", "ccc") == []


def test_new_segments_of_others_are_found_later(
    opened: Callable[..., StoredVectors], clock: Clock
) -> None:
    first, second, model = opened(), opened(), FakeEmbedder()
    assert embed(first, model, "a") == [["a"]]
    assert embed(second, model, "bb") == [["bb"]]
    second.write()
    assert embed(first, model, "bb") == [["bb"]]  # It looked a moment ago.
    third = opened()
    assert embed(third, model, "xx") == [["xx"]]
    second.add(third.over(model)._mark, {})
    clock.now_s += 60
    assert embed(third, model, "bb") == []


def test_models_have_vectors_of_their_own(opened: Callable[..., StoredVectors]) -> None:
    cache, model, other = opened(), FakeEmbedder(), FakeEmbedder()
    other.identity = "another"
    embed(cache, model, "a")
    cache.write()
    assert embed(opened(), other, "a") == [["a"]]
    # The model before is known when it comes back.
    assert embed(opened(), model, "a") == []


def test_many_texts_are_in_segments_of_a_size(
    opened: Callable[..., StoredVectors], tmp_path: Path
) -> None:
    cache, model = opened(100 * MIB), FakeEmbedder()
    texts = [f"text {n}" for n in range(stored.SEGMENT_ROWS + 5)]
    embed(cache, model, *texts)
    cache.write()
    assert len(files(tmp_path)) == 4
    assert embed(opened(100 * MIB), model, *reversed(texts)) == []


def test_small_segments_are_joined(
    opened: Callable[..., StoredVectors], tmp_path: Path, clock: Clock
) -> None:
    cache, model = opened(), FakeEmbedder()
    texts = [f"text {n}" for n in range(40)]
    for text in texts:
        embed(cache, model, text)
        clock.now_s += 1
        cache.write()
    assert len(files(tmp_path)) <= 2 * 18
    assert embed(cache, model, *texts) == []
    assert embed(opened(), model, *texts) == []


def test_the_oldest_go_but_not_those_that_are_used(
    opened: Callable[..., StoredVectors],
    tmp_path: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored, "SEGMENT_ROWS", 100)
    model = FakeEmbedder()
    most = 60_000
    for n in range(24):
        cache = opened(most)
        embed(cache, model, *(f"round {n} text {i}" for i in range(100)), "x" * n)
        found = embed(opened(most), model, "used")
        assert found == ([["used"]] if n == 0 else [])
        again = opened(most)
        embed(again, model, "used")
        clock.now_s += 60
        again.write()
        cache.write()
    assert sum(each.stat().st_size for each in files(tmp_path)) < most * 1.2
    assert embed(opened(most), model, "round 0 text 0") == [["round 0 text 0"]]
    assert embed(opened(most), model, "round 23 text 0") == []


def test_segments_of_earlier_releases_are_read(
    opened: Callable[..., StoredVectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    def named_before(chunk: ChunkInfo) -> dict[str, Any]:
        fields = asdict(chunk)
        return {"sha256": fields.pop("checksum"), **fields}

    cache, model = opened(), FakeEmbedder()
    embed(cache, model, "a")
    with monkeypatch.context() as patched:
        patched.setattr(stored_segments, "asdict", named_before)
        cache.write()
    assert embed(opened(), model, "a") == []


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
@pytest.mark.parametrize("number", [0, 1])
def test_damaged_segments_are_made_again(
    opened: Callable[..., StoredVectors], tmp_path: Path, clock: Clock, damage: str, number: int
) -> None:
    cache, model = opened(), FakeEmbedder()
    embed(cache, model, "a", "bb")
    cache.write()
    path = files(tmp_path)[number]
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-9] if damage == "cut" else content[:-9] + b"123456789")
    clock.now_s += 3600
    other = opened()
    assert embed(other, model, "a", "bb") == [["a", "bb"]]
    assert not files(tmp_path)
    other.write()
    assert embed(opened(), model, "a", "bb") == []


def test_a_segment_that_is_still_written_is_left_alone(
    opened: Callable[..., StoredVectors], tmp_path: Path
) -> None:
    cache, model = opened(), FakeEmbedder()
    embed(cache, model, "a")
    cache.write()
    first, second = files(tmp_path)
    content = first.read_bytes()
    first.unlink()
    assert embed(opened(), model, "a") == [["a"]]
    assert files(tmp_path) == [second]
    first.write_bytes(content)
    assert embed(opened(), model, "a") == []


def test_a_store_that_fails_costs_a_call_of_the_model(
    opened: Callable[..., StoredVectors], monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    cache, model = opened(), FakeEmbedder()
    embed(cache, model, "a")
    cache.write()

    def failing(*_: Any) -> Any:
        raise ResultStoreError("the store is away")

    cache = opened()
    with monkeypatch.context() as away:
        away.setattr(stored_segments, "listed", failing)
        assert embed(cache, model, "a") == [["a"]]
        embed(cache, model, "bb")
        cache.write()
    clock.now_s += 3600
    assert embed(cache, model, "a") == []


def test_texts_of_one_hash_are_told_apart(
    opened: Callable[..., StoredVectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_segments, "hash_of", lambda _key: 7)
    cache, model = opened(), FakeEmbedder()
    embed(cache, model, "a")
    cache.write()
    assert embed(opened(), model, "bb") == [["bb"]]
    assert embed(opened(), model, "a") == []


def test_loads_use_the_store_and_other_texts_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = StoredVectorsPlace(ResultPlace("file", str(tmp_path)), MIB)
    model = FakeEmbedder()
    monkeypatch.setattr(EmbedderSpec, "build", lambda _self: model)
    spec = EmbedderSpec("m", "fake", "x", stored=at)

    def process() -> LoadedEmbedders:
        return LoadedEmbedders(recent=RecentVectors(0))

    mark = mark_of(model.identity)
    loaded = process()
    loaded.embedders_of([spec]).vectors("m", ["a", "bb"], mark)
    cache = loaded.stored(at)
    assert cache is not None and loaded.stored(at) is cache
    cache.write()
    loaded.close()
    assert len(model.calls) == 1
    assert np.array_equal(
        process().embedders_of([spec]).vectors("m", ["bb"], mark).flatten(), np.array([2.0, 1.0])
    )
    assert len(model.calls) == 1
    process().embedders_of([spec]).vectors("m", ["bb"])
    assert len(model.calls) == 2
    model.is_quick = True
    process().embedders_of([spec]).vectors("m", ["bb"], mark)
    assert len(model.calls) == 3


def test_a_store_that_cannot_be_opened_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    at = StoredVectorsPlace(ResultPlace("file", str(tmp_path / "file")), MIB)
    model = FakeEmbedder()
    monkeypatch.setattr(EmbedderSpec, "build", lambda _self: model)
    models = LoadedEmbedders().embedders_of([EmbedderSpec("m", "fake", "x", stored=at)])
    assert models.vectors("m", ["a"], mark_of(model.identity)).to_pylist() == [[1.0, 1.0]]
