"""Folding is stable: case, width, accents and forms of Unicode make no difference."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_search.analysis.scripts import fold, is_unspaced, is_word_character
from caraway_search.analysis.stop_words import is_stop_word

LETTERS = st.text(st.characters(categories=["L", "N"]), max_size=8)
MARKED = st.text("aAeoéöøØñİ\u0131ß\u017fǅ\u0391\u03b1ώΏйЙёЁשָׁעًكカが한", max_size=6)


@given(LETTERS)
def test_folding_again_changes_nothing(word: str) -> None:
    assert fold(fold(word)) == fold(word)


@given(LETTERS | MARKED)
def test_the_form_of_unicode_makes_no_difference(word: str) -> None:
    folded = fold(word)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert fold(unicodedata.normalize(form, word)) == folded


@given(MARKED)
def test_case_makes_no_difference(word: str) -> None:
    assert fold(word.upper()) == fold(word.lower()) == fold(word.title()) == fold(word)


@pytest.mark.parametrize(
    ("word", "folded"),
    [
        ("ÉCLAIR", "eclair"), ("Straße", "strasse"), ("Ærøskøbing", "aeroskobing"),
        ("\uff21\uff22", "ab"), ("ﬁn", "fin"), ("Ώρα", "ωρα"), ("İstanbul", "istanbul"),
        ("Ёлка", "елка"), ("йод", "йод"), ("שָׁלוֹם", "שלום"), ("كِتَاب", "كتاب"), ("हिन्दी", "हिन्दी"),
        ("½", "1\u20442"), ("x²", "x2"), ("Đặng", "dang"), ("", ""),
    ],
)  # fmt: skip
def test_words(word: str, folded: str) -> None:
    assert fold(word) == folded


def test_marks_without_end_take_the_time_of_their_number() -> None:
    """To order them takes the square of it: minutes for these."""
    assert fold("a" + "\u0315\u0300" * 200_000) == "a"
    # Above 30 in a row they are left out.
    devanagari = "\u0915" + "\u094d\u093c" * 200_000
    assert len(fold(devanagari)) <= 32
    assert fold("\u0915" + "\u094d" * 30) == "\u0915" + "\u094d" * 30
    assert fold(("\u0915" + "\u094d" * 20) * 3) == ("\u0915" + "\u094d" * 20) * 3


@pytest.mark.parametrize("character", "ก中あア한ᄀ々𠀀ျខ")
def test_scripts_without_spaces(character: str) -> None:
    assert is_unspaced(character) and is_word_character(character)


@pytest.mark.parametrize("character", "aé1дא٣")
def test_scripts_with_spaces(character: str) -> None:
    assert not is_unspaced(character) and is_word_character(character)


@pytest.mark.parametrize("character", ["'", " ", "\u2044", "-", "_", "\0", "\u200b", "😀"])
def test_what_is_no_part_of_a_word(character: str) -> None:
    assert not is_word_character(character)


@pytest.mark.parametrize(
    ("language", "word"),
    [("danish", "af"), ("english", "the"), ("english", "how"), ("french", "et"),
     ("german", "fur"), ("swedish", "och"), ("russian", "и")],
)  # fmt: skip
def test_stop_words_are_found_folded(language: str, word: str) -> None:
    assert is_stop_word(word, language)
    assert not is_stop_word(word, "none") and not is_stop_word(word, "turkish")


@pytest.mark.parametrize("word", ["", "[danish]", "swedish", "Snowball", "# Words"])
def test_headings_of_the_lists_are_no_stop_words(word: str) -> None:
    languages = ("danish", "english", "swedish", "", "none", "]\n", "english]\nx")
    assert not any(is_stop_word(word, language) for language in languages)
