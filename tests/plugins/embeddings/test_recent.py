"""Vectors that a process remembers."""

from caraway_plugins.embeddings.recent import RecentVectors
from tests.kit.clocks import Clock
from tests.kit.embedders import FakeEmbedder


def test_a_text_is_embedded_once() -> None:
    model, recent = FakeEmbedder(), RecentVectors()
    assert recent.embedded(model, ["a", "bb"]).to_pylist() == [[1.0, 1.0], [2.0, 1.0]]
    found = recent.embedded(model, ["bb", "ccc", "a", "bb"])
    assert [row[0] for row in found.to_pylist()] == [2.0, 3.0, 1.0, 2.0]
    assert model.calls == [["a", "bb"], ["ccc"]]
    assert len(recent.embedded(model, [])) == 0


def test_models_do_not_share_vectors() -> None:
    one, other, recent = FakeEmbedder(), FakeEmbedder(dimensions=3), RecentVectors()
    other.identity = "other"
    recent.embedded(one, ["a"])
    assert recent.embedded(other, ["a"]).to_pylist() == [[1.0, 1.0, 0.0]]


def test_the_oldest_are_forgotten() -> None:
    model, recent = FakeEmbedder(), RecentVectors(most_bytes=3 * (8 + 200))
    for text in ("a", "b", "a", "c", "d"):
        recent.embedded(model, [text])
    model.calls.clear()
    recent.embedded(model, ["a", "c", "d"])
    assert model.calls == []
    recent.embedded(model, ["b"])
    assert model.calls == [["b"]]


def test_vectors_are_kept_for_a_time_and_lookups_are_counted() -> None:
    clock, embedder = Clock(), FakeEmbedder()
    recent = RecentVectors(ttl_s=10, clock=clock)
    recent.embedded(embedder, ["a", "b"])
    clock.now += 9
    recent.embedded(embedder, ["a", "c"])
    assert (recent.requests, recent.hits, len(recent)) == (4, 1, 3)
    clock.now += 1
    recent.embedded(embedder, ["a", "c"])
    assert embedder.calls == [["a", "b"], ["c"], ["a"]]
    nothing = RecentVectors(0)
    nothing.embedded(embedder, ["a"])
    nothing.embedded(embedder, ["a"])
    assert (len(nothing), nothing.size_bytes, nothing.hits) == (0, 0, 0)
