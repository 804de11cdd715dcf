"""Terms in one run of bytes, held against sorted lists of them."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_search.text.vocabulary import Vocabulary, distances, letters
from tests.kit.plain_bm25 import edits

WORD = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
FEW = st.text(alphabet="abé\U0001f986", max_size=5)
TERMS = st.sets(WORD | FEW, max_size=150)
SHORT_WORD = st.text("abcé中", min_size=1, max_size=7)


def of(terms: set[str]) -> tuple[Vocabulary, list[str]]:
    ordered = sorted(terms, key=str.encode)
    array = pa.array([term.encode() for term in ordered], pa.large_binary())
    return Vocabulary.from_terms(array), ordered


@settings(max_examples=80, deadline=None)
@given(TERMS, WORD | FEW)
def test_terms_are_found_by_their_number_and_by_themselves(terms: set[str], other: str) -> None:
    made, ordered = of(terms)
    assert len(made) == len(ordered)
    assert [term.decode() for term in made] == ordered
    for number, term in enumerate(ordered):
        assert made[number] == term.encode()
        assert made.find(term) == number
    assert made.find(other) == (ordered.index(other) if other in terms else None)


@settings(max_examples=80, deadline=None)
@given(TERMS, WORD | FEW)
def test_a_prefix_is_that_of_the_terms_that_begin_with_it(terms: set[str], prefix: str) -> None:
    made, ordered = of(terms)
    found = made.starting(prefix)
    assert [ordered[number] for number in found] == [
        term for term in ordered if term.startswith(prefix)
    ]


def distance(left: str, right: str) -> int:
    """Edits between two words: insertions, removals, replacements and neighbours that swap."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        last, before, row = before, row, [i]
        for j, b in enumerate(right, start=1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, last[j - 2] + 1)
            row.append(best)
    return row[-1]


@settings(max_examples=80, deadline=None)
@given(st.sets(FEW, max_size=60), FEW, st.integers(0, 2))
def test_terms_near_another_are_those_at_exactly_this_distance(
    terms: set[str], term: str, edits: int
) -> None:
    made, ordered = of(terms)
    near = [ordered[number] for number in made.near(term, edits)]
    assert near == [other for other in ordered if distance(term, other) == edits]


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 63, 64, 65, 1000])
def test_every_term_is_found_whatever_the_number_of_blocks(count: int) -> None:
    made, ordered = of({f"t{number:04}" for number in range(count)})
    assert [made.find(term) for term in ordered] == list(range(count))
    for missing in ("", "t", "t0000x", "zzzz", "t9999"):
        assert made.find(missing) is None
    assert made.starting("t") == range(count)
    assert len(made.starting("t00")) == min(count, 100)
    assert len(made.starting("u")) == 0


def test_terms_of_a_slice_are_those_of_the_slice() -> None:
    array = pa.array([b"a", b"bb", b"ccc", b"dddd"], pa.large_binary()).slice(1, 2)
    made = Vocabulary.from_terms(array)
    assert list(made) == [b"bb", b"ccc"]
    assert (made.find("bb"), made.find("a"), made.find("dddd")) == (0, None, None)


def test_a_number_beyond_the_terms_is_none_of_them() -> None:
    made, _ = of({"a", "b"})
    with pytest.raises(IndexError):
        made[2]


@settings(max_examples=200, deadline=None)
@given(SHORT_WORD, st.lists(SHORT_WORD, max_size=20), st.integers(1, 2))
def test_distances_of_many_terms(term: str, others: list[str], most: int) -> None:
    for length in range(8):
        same = [other for other in others if len(other) == length]
        found = distances(term, letters(same, length), most)
        assert [min(int(n), most + 1) for n in found] == [
            min(edits(term, o), most + 1) for o in same
        ]


@settings(max_examples=100, deadline=None)
@given(SHORT_WORD, st.sets(SHORT_WORD, max_size=80), st.integers(0, 2))
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
