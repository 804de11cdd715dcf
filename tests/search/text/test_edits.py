"""Distances of many terms at once are those of one pair at a time."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_search.text.edits import distances, letters
from caraway_search.text.vocabulary import Vocabulary
from tests.kit.plain_bm25 import edits

WORD = st.text("abcé中", min_size=1, max_size=7)


@settings(max_examples=200, deadline=None)
@given(WORD, st.lists(WORD, max_size=20), st.integers(1, 2))
def test_distances_of_many_terms(term: str, others: list[str], most: int) -> None:
    for length in range(8):
        same = [other for other in others if len(other) == length]
        found = distances(term, letters(same, length), most)
        assert [min(int(n), most + 1) for n in found] == [
            min(edits(term, o), most + 1) for o in same
        ]


@settings(max_examples=100, deadline=None)
@given(WORD, st.sets(WORD, max_size=80), st.integers(0, 2))
def test_a_vocabulary_finds_terms(term: str, others: set[str], distance: int) -> None:
    encoded = sorted(other.encode() for other in others)
    vocabulary = Vocabulary.from_terms(pa.array(encoded, pa.large_binary()))
    assert list(vocabulary) == encoded
    near = [encoded[n].decode() for n in vocabulary.near(term, distance)]
    assert sorted(near) == sorted(other for other in others if edits(term, other) == distance)
    place = vocabulary.find(term)
    assert (place is None) == (term not in others) and (
        place is None or encoded[place] == term.encode()
    )
    prefixed = [encoded[n].decode() for n in vocabulary.starting(term)]
    assert sorted(prefixed) == sorted(other for other in others if other.startswith(term))
