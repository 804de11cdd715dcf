"""Vectors are found again in every kind of result store."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from caraway_core.errors import CarawayError
from caraway_core.protocols.results import ResultStore
from caraway_plugins.embeddings import stored_segments
from caraway_plugins.embeddings.stored import StoredVectors
from tests.kit.embedders import FakeEmbedder


def test_vectors_are_stored_in_every_store(results: ResultStore) -> None:
    model = FakeEmbedder()
    texts = [f"text {'x' * number}" for number in range(300)]

    def process(number: int) -> list[list[float]]:
        cache = StoredVectors(results, 1 << 30)
        cache.close()
        found = cache.over(model).embed(texts[number * 60 : number * 60 + 90]).vectors.to_pylist()
        cache.write()
        return list(found)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(process, range(4)))
    model.calls.clear()
    assert process(0) == [[float(len(text)), 1.0] for text in texts[:90]]
    assert not model.calls
    names = stored_segments.listed(results)
    assert {len(name.mark) for name in names} == {16}
    found = stored_segments.index(results, names[0])
    assert stored_segments.vectors(results, found).num_rows == names[0].row_count
    for name in names:
        stored_segments.delete(results, name)
    assert stored_segments.listed(results) == []
    with pytest.raises(CarawayError):
        stored_segments.vectors(results, found)
    assert process(1) and model.calls
