"""Tokens of statements are taken in their order, and what is missing is said."""

import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext.token_reader import TokenReader


def test_words_are_taken_whatever_their_case_and_comments() -> None:
    reader = TokenReader.of("merge /* a */ Into -- b\n t")
    assert not reader.takes("MERGE", "t")
    assert reader.takes("MERGE", "INTO")
    assert reader.word() == "T"
    assert [each.text for each in reader.left()] == ["t"]
    assert reader.name() == ("t",)
    assert (reader.word(), reader.has_more) == ("", False)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        ("A.b.C", ("a", "b", "c")),
        ('"A"."b ""c"""', ("A", 'b "c"')),
        ("`A``b`.c", ("A`b", "c")),
    ],
)
def test_names_have_parts(text: str, parts: tuple[str, ...]) -> None:
    reader = TokenReader.of(f"{text} AS x")
    assert reader.name() == parts
    assert reader.word() == "AS"


def test_a_name_is_kept_as_it_is_written() -> None:
    assert TokenReader.of('"A""b"').written_name() == ('"A""b"', 'A"b')
    assert TokenReader.of("Ab").written_name() == ("Ab", "ab")


@pytest.mark.parametrize("text", ["", ";", "1", "'a'", "(a)", "a.", "a.(b)", ".a"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError, match="a name is missing before"):
        TokenReader.of(text).name()


@pytest.mark.parametrize(
    ("text", "before", "following"),
    [
        ("a + 1 WHEN b", "a + 1", "WHEN"),
        ("f(a, WHEN) WHEN", "f(a, WHEN)", "WHEN"),
        ("CASE WHEN a THEN b END WHEN c", "CASE WHEN a THEN b END", "WHEN"),
        ("case when a then case when b then 1 end end when", "case when a then case when b then 1 "
         "end end", "WHEN"),
        ("'WHEN' || \"WHEN\" WHEN", "'WHEN' || \"WHEN\"", "WHEN"),
        ("WHEN a", "", "WHEN"),
        ("a ; WHEN", "a", ""),
        ("a", "a", ""),
        ("END WHEN", "END", "WHEN"),
    ],
)  # fmt: skip
def test_a_text_reaches_up_to_a_word(text: str, before: str, following: str) -> None:
    reader = TokenReader.of(text)
    assert reader.up_to("WHEN") == before
    assert reader.word() == following


def test_parts_are_divided_outside_of_parentheses() -> None:
    reader = TokenReader.of("a = 1, b = f(2, 3), c = CASE WHEN x THEN (1, 2) END")
    parts = [each.rest("nothing") for each in reader.parts(",")]
    assert [part.split(" = ")[0] for part in parts] == ["a", "b", "c"]
    assert [part.up_to() for part in TokenReader.of("(a, (b), c) ").inside().parts(",")] == [
        "a", "(b)", "c"
    ]  # fmt: skip
    assert list(TokenReader.of("").parts(",")) == []


def test_a_list_is_read_with_its_parentheses() -> None:
    reader = TokenReader.of("(a, f(b, c), d) VALUES")
    assert [each.up_to() for each in reader.listed("no list")] == ["a", "f(b, c)", "d"]
    assert reader.word() == "VALUES"


@pytest.mark.parametrize(
    ("text", "message"),
    [("a, b)", "no list"), ("", "no list"), ("(a, b", "a closing parenthesis is missing"),
     ("(a ; b)", "a closing parenthesis is missing")],
)  # fmt: skip
def test_a_list_that_is_broken_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidQueryError, match=message):
        list(TokenReader.of(text).listed("no list"))


def test_words_that_are_needed_are_named() -> None:
    reader = TokenReader.of(f"USING {'x' * 100}")
    reader.needs("USING")
    with pytest.raises(InvalidQueryError, match=r"'ON THE' is missing before 'X{50}'$"):
        reader.needs("ON", "THE")


def test_the_rest_is_the_text_as_it_is_written() -> None:
    reader = TokenReader.of("AS SELECT  a,\n b")
    assert reader.takes("AS")
    assert reader.rest("no query") == "SELECT  a,\n b"
    with pytest.raises(InvalidQueryError, match="no query"):
        TokenReader.of(" ; ").rest("no query")


def reader_after_name(text: str) -> TokenReader:
    reader = TokenReader.of(f"t {text}")
    reader.name()
    return reader


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "one table; 'X' is not supported"),
        ("; x", "send one statement at a time"),
        (" ;; 'a'", "send one statement at a time"),
    ],
)
def test_what_follows_the_end_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidQueryError, match=message):
        reader_after_name(text).end("one table")


@pytest.mark.parametrize("text", ["", ";", " ; -- a\n ;", "/* a */"])
def test_semicolons_may_follow_the_end(text: str) -> None:
    reader_after_name(text).end("one table")
