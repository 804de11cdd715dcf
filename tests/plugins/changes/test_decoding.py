"""Numbers in the bodies of events reach their columns with every digit, or are refused."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_plugins.changes import decoding
from caraway_plugins.changes.target import BadChangesError, ChangeTarget
from tests.plugins.changes.events import JSON

WIDE = pa.decimal128(38, 18)
TARGET = ChangeTarget(
    pa.schema(
        [
            ("id", pa.int64()),
            ("p", WIDE),
            ("each", pa.list_(WIDE)),
            ("note", pa.string()),
            ("x", pa.float64()),
        ]
    ),
    ("id",),
)
NUMBERS = st.one_of(
    st.from_regex(r"-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,18})?", fullmatch=True),
    st.from_regex(r"-?[1-9][0-9]{0,3}\.[0-9]{1,6}[eE][-+]?[0-9]", fullmatch=True),
    st.from_regex(r"-?10{15,18}[0-9]", fullmatch=True),
    st.from_regex(r"0\.[1-9]0{14,15}[0-9]{2}", fullmatch=True),
)


def _decoded(body: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = decoding.decode(body.encode(), JSON, {}, TARGET).rows.to_pylist()
    return rows


def _event(columns: str) -> str:
    return f'{{"op": "c", "after": {{"id": 1, {columns}}}}}'


def _as_text(columns: str) -> str:
    """Debezium sends the documents of MongoDB as JSON inside of a text."""
    return json.dumps({"op": "c", "after": f'{{"id": 1, {columns}}}'})


@settings(max_examples=40)
@given(NUMBERS, st.sampled_from(["p: {}", "p:\n {}"]))
def test_a_decimal_has_all_digits_of_its_text(number: str, layout: str) -> None:
    columns = layout.replace("p", '"p"', 1).format(number)
    expected = Decimal(number)

    assert _decoded(_event(columns))[0]["p"] == expected
    assert _decoded(f"[{_event(columns)}]")[0]["p"] == expected
    assert _decoded(_as_text(columns))[0]["p"] == expected
    line = _event(columns).replace("\n", " ")
    assert [row["p"] for row in _decoded(f"{line}\n{line}")] == [expected, expected]


@settings(max_examples=40)
@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_decimals_in_lists_have_all_digits(numbers: list[str]) -> None:
    (row,) = _decoded(_event(f'"each": [{", ".join(numbers)}]'))
    assert row["each"] == list(map(Decimal, numbers))


@settings(max_examples=40)
@given(NUMBERS)
def test_objects_that_become_texts_keep_the_digits_of_their_numbers(number: str) -> None:
    (row,) = _decoded(_event(f'"note": {{"a": [{number}, "b"]}}'))
    found = json.loads(row["note"], parse_float=Decimal)["a"][0]
    assert Decimal(found) == Decimal(number)


def test_a_key_that_is_escaped_hides_no_digits() -> None:
    (row,) = _decoded(_event('"\\u0070": 0.100000000000000001'))
    assert row["p"] == Decimal("0.100000000000000001")


def test_an_update_of_a_long_key_is_seen() -> None:
    """Both numbers are the same double, so the old row would stay."""
    target = ChangeTarget(pa.schema([("k", pa.decimal128(38, 0))]), ("k",))
    old, new = (f'{{"k": {10**20 + number}}}' for number in (1, 2))
    body = f'{{"op": "u", "before": {old}, "after": {new}}}'
    rows = decoding.decode(body.encode(), JSON, {}, target).rows
    assert rows["k"].to_pylist() == [Decimal(10**20 + 1), Decimal(10**20 + 2)]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ('"p": 0.1234567890123456789', "column 'p': the value does not fit"),
        ('"p": 1e-400', "column 'p': the value does not fit"),
        ('"p": 1e400', "the number 1e400 is out of range"),
        ('"p": NaN', "NaN is not a JSON value"),
        ('"x": "1e400"', "column 'x': a number in the range of a double is expected"),
        ('"x": 1, "x": 2', 'the key "x" is there twice'),
        ('"note": 1.5', "column 'note': a string is expected, not a"),
        ('"each": [1, "x"]', "column 'each[]': a decimal is expected"),
        ('"id": 2, "y": 1', "there twice"),
        ('"y": 1', "column 'y' is not in the dataset"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(columns: str, says: str) -> None:
    with pytest.raises(BadChangesError) as caught:
        _decoded(_event(columns))
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("content_type", "says"),
    [
        (None, "the Content-Type is missing"),
        ("", "the Content-Type is missing"),
        ("; charset=utf-8", "the Content-Type is missing"),
        ("text/plain", "Content-Type 'text/plain' is not supported; known: application/json"),
        ("application/jsonx", "'application/jsonx' is not supported"),
        ("x" * 5000, f"'{'x' * 100}' is not supported"),
    ],
)
def test_bodies_of_other_kinds_are_refused(content_type: str | None, says: str) -> None:
    with pytest.raises(BadChangesError) as caught:
        decoding.form(content_type)
    assert says in caught.value.message


def test_parameters_of_the_content_type_do_not_matter() -> None:
    assert decoding.form("Application/JSON ; charset=utf-8") == "json"
    assert decoding.form("application/avro;v=1") == "avro"


@pytest.mark.parametrize("opening", ['{"a":', "["])
def test_deep_nesting_is_an_error_of_the_sender(opening: str) -> None:
    with pytest.raises(BadChangesError, match=r"nested too deeply|not JSON"):
        _decoded(opening * 100_000)


def test_columns_that_are_not_nullable_need_a_value() -> None:
    target = ChangeTarget(
        pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.string(), nullable=False)]), ("id",)
    )
    for columns in ({"id": 1}, {"id": 1, "n": None}):
        body = json.dumps([{"op": "d", "before": {"id": 1}}, {"op": "c", "after": columns}])
        with pytest.raises(BadChangesError, match="event 2: column 'n' is missing or NULL"):
            decoding.decode(body.encode(), JSON, {}, target)


@pytest.mark.parametrize("depth", [300, 900, 990, 1_020])
def test_values_are_as_deep_as_they_can_be_written(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    target = ChangeTarget(pa.schema([("id", pa.int64()), ("n", pa.string())]), ("id",))
    for body in (
        f'{{"op":"c","after":{{"id":1,"n":{nested}}}}}',
        f'{{"op":"c","after":{{"id":1}}}}\n{{"op":"c","after":{{"id":1,"n":{nested}}}}}',
    ):
        with pytest.raises(BadChangesError, match="nested"):
            decoding.decode(body.encode(), JSON, {}, target)


def test_deep_schemas_of_events_are_read() -> None:
    schema = '{"items":' * 300 + "{}" + "}" * 300
    event = f'{{"schema":{schema},"payload":{{"op":"c","after":{{"id":1}}}}}}'
    target = ChangeTarget(pa.schema([("id", pa.int64())]))
    assert decoding.decode(event.encode(), JSON, {}, target).received == 1
