import re
from decimal import Decimal
from typing import Any

import pytest

from caraway_core.json_texts import strict_json

BAD = [
    ('{"a": 1, "a": 2}', 'the key "a" is there twice'),
    ('[{"x": {"b": 1, "c": 2, "b": 1}}]', 'the key "b" is there twice'),
    ('{"a": 1, "\\u0061": 2}', 'the key "a" is there twice'),
    ("1e400", "the number 1e400 is out of range"),
    ('{"a": [-1e999]}', "out of range"),
    ("NaN", "NaN is not a JSON value"),
    ("[-Infinity]", "-Infinity is not a JSON value"),
    ("[" * 100_000, "it is nested too deeply"),
    ('{"a":' * 100_000, "it is nested too deeply"),
    ("9" * 5_000, "more than 1000 digits"),
    ('"\\ud800"', "half of a Unicode character"),
    ('{"\\udc00": 1}', "half of a Unicode character"),
    (b'"\xff"', "byte 1 is not UTF-8"),
    ("{", "line 1, column 2: expecting property name"),
    ("[1]\n2", "line 2, column 1: extra data"),
    ("", "line 1, column 1: expecting value"),
]


@pytest.mark.parametrize("parse", [strict_json.parse, strict_json.parse_exactly])
@pytest.mark.parametrize(("text", "says"), BAD)
def test_what_hides_a_mistake_is_refused(parse: Any, text: str | bytes, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as refused:
        parse(text)
    assert "char 0" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": {"a": 1}}', {"a": 1, "b": {"a": 1}}),
        (b"\xef\xbb\xbf[1.5, 1e308, -0, null, true]", [1.5, 1e308, 0, None, True]),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("9" * 100, int("9" * 100)),
    ],
)
def test_plain_json_is_read(text: str | bytes, value: Any) -> None:
    assert strict_json.parse(text) == value


def test_exact_reading_keeps_each_digit() -> None:
    assert strict_json.parse_exactly("0.10") == Decimal("0.10")
