"""Postings count terms and know their places, also where narrow numbers end."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_search.analysis.analyzer import Analyzer
from caraway_search.queries.tree import CountedTerm
from caraway_search.text.postings import Postings, TermPostings

PLAIN = Analyzer("none")
TEXTS = st.lists(st.none() | st.lists(st.sampled_from(["a", "b", "ab", "é"])).map(" ".join))


def built(texts: list[str | None]) -> Postings:
    postings = Postings.build(pa.array(texts, pa.string()), PLAIN)
    # As it is read from a file.
    return Postings.opened(dict(postings.arrays("x.")), "x.")


def rows(found: TermPostings) -> dict[int, int]:
    assert all(np.diff(found.rows.astype(np.int64)) > 0)
    return {int(row): int(n) for row, n in zip(found.rows, found.counts, strict=True)}


def expected(texts: list[str | None], *terms: str) -> dict[int, int]:
    found = {}
    for row, text in enumerate(texts):
        words = Counter((text or "").replace("é", "e").split())
        if count := sum(words[term] for term in terms):
            found[row] = count
    return found


@given(TEXTS)
def test_terms_have_their_rows_and_places(texts: list[str | None]) -> None:
    postings = built(texts)
    assert postings.filled.tolist() == [text is not None for text in texts]
    assert postings.lengths.tolist() == [len((text or "").split()) for text in texts]
    assert postings.token_count == sum(postings.lengths.tolist())
    for term in ("a", "b", "ab", "e", "none"):
        assert rows(postings.postings_of(CountedTerm(term))) == expected(texts, term)
        places = [
            (row << 32) + place
            for row, text in enumerate(texts)
            for place, word in enumerate((text or "").replace("é", "e").split())
            if word == term
        ]
        assert postings.places(term).tolist() == places
    prefix = CountedTerm("a", is_prefix=True, stem="e")
    assert rows(postings.postings_of(prefix)) == expected(texts, "a", "ab", "e")
    near = CountedTerm("a", 1)
    assert rows(postings.postings_of(near)) == expected(texts, "b", "ab", "e")


@pytest.mark.parametrize("count", [255, 256, 65_535, 65_536])
def test_many_of_one_term_in_one_text(count: int) -> None:
    texts = ["a " * count + "b", "b"]
    postings = built([*texts])
    assert rows(postings.postings_of(CountedTerm("a"))) == {0: count}
    assert rows(postings.postings_of(CountedTerm("", is_prefix=True))) == {0: count + 1, 1: 1}
    assert postings.places("b").tolist() == [count, 1 << 32]
    assert postings.lengths.tolist() == [count + 1, 1] and postings.token_count == count + 2
    assert postings.divisors(1.0)[0] == pytest.approx(1.2 * (0.25 + 0.75 * (count + 1)))


@pytest.mark.parametrize("count", [255, 256, 257, 65_536, 65_537])
def test_many_rows_and_many_terms(count: int) -> None:
    postings = built([f"t{n} same" for n in range(count)])
    last = CountedTerm(f"t{count - 1}")
    assert rows(postings.postings_of(last)) == {count - 1: 1}
    assert len(postings.postings_of(CountedTerm("same")).rows) == count
    assert len(postings.postings_of(CountedTerm("t", is_prefix=True)).rows) == count
    assert postings.places("same")[-1] == ((count - 1) << 32) + 1


@pytest.mark.parametrize("texts", [[], [None], [""], ["", None, " ... "]])
def test_texts_without_words(texts: list[Any]) -> None:
    postings = built(texts)
    for sought in (CountedTerm("a"), CountedTerm("", is_prefix=True), CountedTerm("a", 1)):
        assert rows(postings.postings_of(sought)) == {}
    assert postings.places("a").tolist() == []
    assert postings.lengths.tolist() == [0] * len(texts)


def test_what_is_kept_of_expanded_terms_has_an_end() -> None:
    texts = [f"t{n}" for n in range(100)]
    postings = built([*texts])
    for number in range(100):
        sought = CountedTerm(f"t{number}", is_prefix=True)
        first, again = postings.postings_of(sought), postings.postings_of(sought)
        assert first is again and number in rows(first)
    assert len(postings._expanded) <= 32
