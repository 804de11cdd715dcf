"""Texts become terms: whole columns, and words of queries, in the same way."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_search.analysis import analyzer
from caraway_search.analysis.analyzer import LANGUAGES, LONGEST_TERM, Analyzer


def terms(text: str | None, language: str = "english") -> list[str]:
    tokens = Analyzer(language).tokens(pa.array([text], pa.string()))
    found: list[str] = tokens.terms.take(pa.array(tokens.ids)).to_pylist()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Runner's running", ["the", "runner", "run"]),
        ("Café CAFE cafe\u0301 ﬁne \uff26\uff55ll", ["cafe", "cafe", "cafe", "fine", "full"]),
        ("don't 'quoted' rock\u2019n\u2019roll ''", ["dont", "quot", "rocknrol"]),
        ("a_b-c/d1 x86", ["a", "b", "c", "d1", "x86"]),
        ("中文字 abc中文def 字", ["中文", "文字", "字", "abc", "中文", "文", "def", "字"]),
        ("ภาษา", ["ภา", "าษ", "ษา", "า"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("Ёлка йод", ["елка", "йод"]),
        ("½ ½x", ["1", "2", "1", "2x"]),
        ("straße Øre æ", ["strass", "ore", "ae"]),
        ("🙂 — …", []),
        ("", []),
        (None, []),
    ],
)
def test_texts_become_terms(text: str | None, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("french", "l'avion qu\u2019il chevaux", ["l", "avion", "qu", "il", "cheval"]),
        ("german", "Häuser Hauses", ["haus", "haus"]),
        ("none", "running's", ["running's"]),
        ("russian", "книги книга", ["книг", "книг"]),
    ],
)
def test_languages_have_their_stems(language: str, text: str, expected: list[str]) -> None:
    assert terms(text, language) == expected


def test_every_language_of_the_manifest_is_known() -> None:
    from caraway_core.manifest.values.search_columns import LANGUAGES as DECLARED

    assert set(LANGUAGES) >= DECLARED
    for language in sorted(DECLARED):
        assert terms("word", language)


def test_a_word_without_end_is_cut() -> None:
    assert [len(term) for term in terms("x" * 100_000)] == [LONGEST_TERM]


def test_counts_tell_the_tokens_of_each_text() -> None:
    column = pa.chunked_array([pa.array(["a b a", None]), pa.array(["", "c"])])
    tokens = Analyzer().tokens(column.combine_chunks())
    assert (tokens.counts.tolist(), tokens.ids.tolist()) == ([3, 0, 0, 1], [0, 1, 0, 2])
    sliced = Analyzer().tokens(pa.array(["x", "a b", "y"], pa.large_string()).slice(1, 1))
    assert (sliced.terms.to_pylist(), sliced.counts.tolist()) == (["a", "b"], [2])


def test_blocks_are_split_as_whole_columns_are(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["one two", None, "Two three one", "", "l'eau", "四五六", "four four", "two"]
    whole = Analyzer("french").tokens(pa.array(texts))
    monkeypatch.setattr(analyzer, "_SPLIT_AT_ONCE", 2)
    chunks = pa.chunked_array([pa.array(texts[:3]), pa.array(texts[3:])])
    for column in (chunks, pa.array(texts), pa.array(["x", *texts, "y"]).slice(1, len(texts))):
        cut = Analyzer("french").tokens(column)
        assert cut.counts.tolist() == whole.counts.tolist()
        found, expected = (each.terms.take(pa.array(each.ids)) for each in (cut, whole))
        assert found.to_pylist() == expected.to_pylist()
    none = Analyzer().tokens(pa.chunked_array([], pa.string()))
    assert (len(none.terms), len(none.ids), len(none.counts)) == (0, 0, 0)


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_a_query_is_analysed_as_a_text_is(text: str) -> None:
    analyzer = Analyzer()
    pieces = [piece for word in analyzer.words(text) for piece in analyzer.pieces(word)]
    valid = text.encode("utf-8", "replace").decode()
    assert [term for piece in pieces for term in analyzer.terms(piece)] == terms(valid)
