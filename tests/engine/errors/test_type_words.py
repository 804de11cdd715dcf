"""Error texts name SQL types in place of the engine's, and leave the user's text alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_engine.errors.type_words import NAMES, translated

TEXTS = [
    ("cannot coerce Int64 and Utf8View", "cannot coerce BIGINT and TEXT"),
    ("Cannot cast string 'Int64' to Int32 type", "Cannot cast string 'Int64' to INT type"),
    ('column "Utf8" is missing', 'column "Utf8" is missing'),
    ("Decimal128(12, 3) is not Decimal256(40, 0)", "DECIMAL(12, 3) is not DECIMAL(40, 0)"),
    ("Timestamp(Nanosecond, None)", "TIMESTAMP"),
    ('Timestamp(Nanosecond, Some("UTC")) or Date32', "TIMESTAMP or DATE"),
    ("Time32(Second), Time64(Nanosecond)", "TIME, TIME"),
    ("Interval(MonthDayNano) of Duration(Second)", "INTERVAL of DURATION"),
    ("Int64(5) is not in Float64(-1.5)", "5 is not in -1.5"),
    ("UInt8(200) and UInt8", "200 and TINYINT UNSIGNED"),
    ("List(Int64)", "List(BIGINT)"),
    ("MyInt64 and Int64s stay", "MyInt64 and Int64s stay"),
    ("it''s 'a ''Int8'' b' Int8", "it''s 'a ''Int8'' b' TINYINT"),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_types_have_their_sql_names(text: str, expected: str) -> None:
    assert translated(text) == expected


@pytest.mark.parametrize(("name", "word"), NAMES.items())
def test_every_name_is_replaced_as_a_whole_word(name: str, word: str) -> None:
    assert translated(f"of {name}, not x{name}") == f"of {word}, not x{name}"


@given(st.text(st.characters(exclude_characters="'\"\n"), max_size=30))
def test_quoted_text_stays(text: str) -> None:
    quoted = f"value '{text}' and \"{text}\""
    assert translated(f"{quoted} of Int64") == f"{quoted} of BIGINT"


@given(st.text(max_size=60))
def test_any_text_is_translated_once(text: str) -> None:
    """A second pass changes nothing that the first one left as it was."""
    if translated(text) == text:
        assert translated(translated(text)) == text
