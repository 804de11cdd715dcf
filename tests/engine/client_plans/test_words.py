"""Texts and names of plans as SQL, which nothing in them can leave."""

import pytest

from caraway_core.errors import InvalidQueryError
from caraway_engine.client_plans import words
from caraway_engine.client_plans.words import PlanTerm

TEXTS = ["", "a", "it's", "''", "\\'", "'; DROP TABLE t --", 'a"b', '""', "é\n\t", "$1", "/* x */"]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_one_literal(text: str) -> None:
    found = words.text(text)
    assert found[0] == found[-1] == "'"
    assert found[1:-1].replace("''", "").count("'") == 0
    assert found[1:-1].replace("''", "'") == text


@pytest.mark.parametrize("name", TEXTS)
def test_names_are_one_identifier(name: str) -> None:
    found = words.name(name)
    assert found[0] == found[-1] == '"'
    assert found[1:-1].replace('""', "").count('"') == 0
    assert found[1:-1].replace('""', '"') == name


@pytest.mark.parametrize("text", ["\0", "a\0b"])
def test_nul_is_refused(text: str) -> None:
    for written in (words.text, words.name):
        with pytest.raises(InvalidQueryError, match="the character NUL"):
            written(text)


def test_operands_have_parentheses_unless_they_are_atoms() -> None:
    assert PlanTerm("a + b").operand == "(a + b)"
    assert PlanTerm("a", is_atomic=True).operand == "a"


def test_lists() -> None:
    terms = [PlanTerm("a"), PlanTerm("b + 1", has_window=True)]
    assert words.listed(terms) == "a, b + 1"
    assert words.listed([]) == ""
    assert words.any_window(terms)
    assert not words.any_window(terms[:1])
