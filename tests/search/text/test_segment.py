"""Text segments give the scores of a textbook's BM25, to the bit, however a table is split."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from caraway_search.analysis.analyzer import VERSION
from caraway_search.errors import DamagedIndexError, InvalidSearchError
from caraway_search.queries.parsing import parse
from caraway_search.text.segment import TextIndexSpec, TextSegment
from caraway_search.text.statistics import TextStatistics
from tests.kit.plain_bm25 import Oracle

WORDS = ["run", "running", "runner", "café", "cafe", "zoo", "z", "中文字", "don't", "rum", "Ruin"]
TEXT = st.none() | st.lists(st.sampled_from([*WORDS, ",", "-"]), max_size=9).map(" ".join)
OPERATORS = ["AND", "OR", "NOT", "(", ")", '"', "+run", "-zoo", "ru*", "rum~1", "run~2", "中", "+("]
QUERY = st.lists(st.sampled_from([*WORDS, *OPERATORS, '"zoo run"', "中文"]), max_size=8).map(
    " ".join
)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(TEXT, TEXT, st.booleans(), st.booleans()), min_size=1, max_size=14),
    query=QUERY,
    cuts=st.lists(st.integers(0, 14), max_size=4),
    limit=st.integers(0, 6),
)
@example([("run", None, True, True)], "run AND NOT (zoo) -", [0], 1)
def test_any_split_scores_as_the_oracle_does(
    rows: list[tuple[str | None, str | None, bool, bool]], query: str, cuts: list[int], limit: int
) -> None:
    spec = TextIndexSpec({"title": 2.0, "body": 1.0})
    titles, bodies, live, passes = (list(values) for values in zip(*rows, strict=True))
    bounds = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    parsed = parse(query, spec.analyzer)
    segments = []
    for start, end in pairwise(bounds):
        columns = {
            "title": pa.array(titles[start:end], pa.string()),
            "body": pa.array(bodies[start:end], pa.string_view()),
        }
        segment = TextSegment.opened(TextSegment.build(spec, columns).packed())
        segments.append((start, segment, np.array(live[start:end]), np.array(passes[start:end])))
    statistics = TextStatistics.merged(s.statistics(parsed, alive) for _, s, alive, _ in segments)

    oracle = Oracle(spec.boosts, {"title": titles, "body": bodies}, live, spec.analyzer)
    expected = {r: s for r, s in oracle.scores(parsed).items() if passes[r]}
    found: dict[int, float] = {}
    for start, segment, alive, passing in segments:
        hits = segment.search(parsed, statistics, len(rows), alive & passing)
        found |= {start + int(r): float(s) for r, s in zip(hits.rows, hits.scores, strict=True)}
        few = segment.search(parsed, statistics, limit, alive & passing)
        assert few.scores.tolist() == [
            s for s in hits.scores.tolist() if s in sorted(hits.scores.tolist())[::-1][:limit]
        ]
    assert found == expected


def test_statistics_without_a_mask_count_all_rows() -> None:
    spec = TextIndexSpec({"t": 1.0})
    segment = TextSegment.build(spec, {"t": pa.array(["a b", None, "", "b b"])})
    query = parse("b", spec.analyzer)
    everything = segment.statistics(query)
    assert everything == segment.statistics(query, np.ones(4, np.bool_))
    column = everything.columns["t"]
    assert (column.rows, column.tokens, list(column.frequencies.values())) == (3, 4, [2])


@pytest.mark.parametrize("language", ["english", "french", "none"])
def test_a_packed_segment_keeps_its_spec(language: str) -> None:
    spec = TextIndexSpec({"a": 1.5, "b": 0.5}, language)
    segment = TextSegment.build(spec, {"a": pa.array(["x"]), "b": pa.array(["l'été"])})
    opened = TextSegment.opened(memoryview(segment.packed()))
    assert (opened.spec, opened.row_count, opened.nbytes) == (spec, 1, segment.nbytes)


def test_terms_of_another_analysis_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = TextIndexSpec({"a": 1.0})
    block = TextSegment.build(spec, {"a": pa.array(["x"])}).packed()
    monkeypatch.setattr("caraway_search.text.segment.VERSION", VERSION + 1)
    with pytest.raises(DamagedIndexError, match=f"analysis {VERSION}, not {VERSION + 1}"):
        TextSegment.opened(block)


@pytest.mark.parametrize("boost", [0.0, -1.0, float("nan"), float("inf")])
def test_a_boost_is_above_zero(boost: float) -> None:
    with pytest.raises(InvalidSearchError, match="boost"):
        TextIndexSpec({"a": boost})


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InvalidSearchError, match="'klingon'; known: none, arabic"):
        TextIndexSpec({"a": 1.0}, "klingon")


def test_many_terms_keep_their_order() -> None:
    """More than 65,536 terms are sorted in two steps."""
    texts = [" ".join(f"w{n * 7 + i}" for i in range(7)) for n in range(10_000)]
    spec = TextIndexSpec({"t": 1.0}, "none")
    segment = TextSegment.build(spec, {"t": pa.chunked_array([pa.array(texts)])})
    for word, row in (("w0", 0), ("w69999", 9999), ("w35001", 5000)):
        query = parse(word, spec.analyzer)
        assert segment.search(query, segment.statistics(query), 5).rows.tolist() == [row]


@pytest.mark.parametrize("texts", [["a b", None, "", "b b"], [None, ""], []])
def test_the_first_search_of_a_segment_finds_its_vocabulary_ready(texts: list[str | None]) -> None:
    spec = TextIndexSpec({"t": 1.0}, "none")
    postings = TextSegment.build(spec, {"t": pa.array(texts, pa.string())}).postings["t"]
    ready = vars(postings)
    assert ready["token_count"] == sum(len((text or "").split()) for text in texts)
    assert ready["_least_length"] == min((len(t.split()) for t in texts if t), default=0)
    assert len(vars(postings.vocabulary)["_landmarks"]) == bool(postings.token_count)
