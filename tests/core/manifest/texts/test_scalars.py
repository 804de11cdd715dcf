"""Unquoted values follow YAML 1.2, and a number remembers how it was written."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.manifest.texts import scalars, units


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_nothing(text: str) -> None:
    assert scalars.resolve(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), ("False", False), ("0", 0), ("-7", -7), ("+7", 7),
     ("007", 7), ("0o17", 15), ("0xFf", 255), ("1.50", 1.5), (".5", 0.5), ("1.", 1.0),
     ("-1e3", -1000.0), ("1E+2", 100.0), ("9" * 400, int("9" * 400))],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    found = scalars.resolve(text)
    assert found == value and isinstance(found, type(value))


@pytest.mark.parametrize(
    "text",
    ["no", "yes", "on", "off", "y", "nULL", "tRUE", "1:30", "2024-01-01", "1_000", "0b11", "0o8",
     "0xg", "-0x1", "+", "-", ".", "e5", "1e", "1e1.5", "1,5", "٣", "½", "1 ", " 1", "1\n", ".inf",
     "nan", "inf", "infinity", "9" * 401, "1e1234567890", "1e400", "-1e999",
     "1" * 300 + "e99", "$5", "=", "<<"],
)  # fmt: skip
def test_what_looks_like_text_stays_text(text: str) -> None:
    assert scalars.resolve(text) == text


NUMBERS = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[-+]?[0-9]{1,6}(\.[0-9]{0,4})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"0[xo][0-7]{1,8}", fullmatch=True),
)


@given(NUMBERS | st.text(max_size=6))
def test_a_value_is_written_as_it_was(text: str) -> None:
    value = scalars.resolve(text)
    if value is None:
        with pytest.raises(ValueError, match="must be a text, a number, true or false"):
            scalars.written(value)
    elif isinstance(value, bool):
        assert scalars.written(value) == text.lower()
    else:
        assert scalars.written(value) == text


@given(NUMBERS)
def test_numbers_are_those_of_python(text: str) -> None:
    value = scalars.resolve(text)
    wanted = int(text, 0) if text[:2] in ("0x", "0o") else float(text)
    if math.isinf(wanted):
        assert value == text
        return
    plain = scalars.plain({"a": [value]})
    assert isinstance(plain, dict) and type(plain["a"][0]) in (int, float)
    assert math.isclose(plain["a"][0], wanted)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@given(NUMBERS | st.sampled_from(["1e5", "0x10", "007", "1.50", "-0", "1e400", "5.", ".5"]))
def test_a_number_means_the_same_in_quotes(text: str) -> None:
    """Params are texts where they are used, and rules see the numbers."""
    for read in (units.seconds, units.size_bytes):
        results: list[object] = []
        for value in (text, scalars.resolve(text)):
            try:
                results.append(read(value))
            except ValueError as exc:
                results.append(str(exc))
        assert results[0] == results[1]


@pytest.mark.parametrize("value", [None, [], {}, [1], {"a": 1}, object()])
def test_what_is_no_scalar_cannot_be_written(value: object) -> None:
    with pytest.raises(ValueError, match="must be a text"):
        scalars.written(value)
