"""Texts of PostgreSQL become the values that its own output functions were given."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_plugins.changes.postgres import values

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
UTC_MICROS = pa.timestamp("us", "UTC")


def _read(texts: list[str | None], type_: pa.DataType) -> list[Any]:
    found = values.column(texts, pa.field("c", type_))
    found.validate(full=True)
    assert found.type == type_
    read: list[Any] = found.to_pylist()
    return read


def _array(items: list[str | None]) -> str:
    """Write an array as PostgreSQL's array_out does."""
    written = []
    for item in items:
        if item is None:
            written.append("NULL")
        elif not item or item.upper() == "NULL" or any(c in '{},"\\ \t\n\r\v\f' for c in item):
            escaped = item.replace("\\", "\\\\").replace('"', '\\"')
            written.append(f'"{escaped}"')
        else:
            written.append(item)
    return "{" + ",".join(written) + "}"


@settings(max_examples=40)
@given(st.lists(st.none() | st.lists(st.none() | TEXTS, max_size=4), max_size=4))
def test_arrays_of_texts_keep_every_character(rows: list[list[str | None] | None]) -> None:
    texts = [None if row is None else _array(row) for row in rows]
    assert _read(texts, pa.list_(pa.string())) == rows
    moved = [None if text is None else f"[0:{len(text)}]={text}" for text in texts]
    assert _read(moved, pa.list_(pa.string())) == rows


@settings(max_examples=40)
@given(st.lists(st.none() | st.lists(st.none() | st.binary(max_size=5), max_size=3), max_size=3))
def test_arrays_of_bytes_are_unescaped_twice(rows: list[list[bytes | None] | None]) -> None:
    texts = [
        None if row is None else _array([None if b is None else f"\\x{b.hex()}" for b in row])
        for row in rows
    ]
    assert _read(texts, pa.list_(pa.binary())) == rows


@settings(max_examples=40)
@given(st.lists(st.none() | st.binary(max_size=8), max_size=4))
def test_bytes_are_read_from_hexadecimal_digits(rows: list[bytes | None]) -> None:
    texts = [None if each is None else f"\\x{each.hex()}" for each in rows]
    assert _read(texts, pa.binary()) == rows


@settings(max_examples=40)
@given(st.lists(st.none() | st.datetimes(dt.datetime(1000, 1, 1)), max_size=4))
def test_moments_have_a_fraction_of_any_length(rows: list[dt.datetime | None]) -> None:
    texts = [None if each is None else _moment(each) for each in rows]
    assert _read(texts, pa.timestamp("us")) == rows
    zoned = [None if each is None else each.replace(tzinfo=dt.UTC) for each in rows]
    assert _read([text and f"{text}+00" for text in texts], UTC_MICROS) == zoned
    times = [None if each is None else each.time() for each in rows]
    assert _read([text and text.split(" ")[1] for text in texts], pa.time64("us")) == times


def _moment(moment: dt.datetime) -> str:
    text = f"{moment:%Y-%m-%d %H:%M:%S.%f}"
    return text.rstrip("0").rstrip(".")


@settings(max_examples=40)
@given(st.lists(st.none() | st.integers(-(10**29), 10**29), max_size=4), st.integers(0, 8))
def test_decimals_have_all_their_digits(rows: list[int | None], scale: int) -> None:
    numbers = [None if each is None else Decimal(f"{each}e-{scale}") for each in rows]
    texts = [None if each is None else format(each, "f") for each in numbers]
    assert _read(texts, pa.decimal128(38, 8)) == numbers


@settings(max_examples=40)
@given(st.lists(st.none() | st.floats(allow_nan=False), max_size=4))
def test_doubles_are_the_same_after_their_shortest_text(rows: list[float | None]) -> None:
    words = {float("inf"): "Infinity", float("-inf"): "-Infinity"}
    texts = [None if each is None else words.get(each, repr(each)) for each in rows]
    assert _read(texts, pa.float64()) == rows


def test_words_of_booleans_and_numbers() -> None:
    assert _read(["t", None, "f"], pa.bool_()) == [True, None, False]
    assert _read(["{t,NULL,f}", "{}"], pa.list_(pa.bool_())) == [[True, None, False], []]
    assert _read([None, None], pa.bool_()) == [None, None]
    assert _read([], pa.list_(pa.int32())) == []
    (nan,) = _read(["NaN"], pa.float64())
    assert nan != nan


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("true", pa.bool_()),
        ("", pa.bool_()),
        ("32768", pa.int16()),
        ("1.5", pa.int32()),
        ("-1", pa.uint32()),
        ("NaN", pa.decimal128(10, 2)),
        ("Infinity", pa.decimal128(10, 2)),
        ("1.234", pa.decimal128(10, 2)),
        ("123456789.00", pa.decimal128(10, 2)),
        ("0.000000000000000000001", pa.decimal128(38, 20)),
        ("infinity", pa.date32()),
        ("10000-01-01", pa.date32()),
        ("0044-03-15 BC", pa.date32()),
        ("-infinity", UTC_MICROS),
        ("24:00:00", pa.time64("us")),
        ("not hex", pa.binary()),
        ("\\x0", pa.binary()),
        ("\\xzz", pa.binary()),
        ("{{1,2},{3,4}}", pa.list_(pa.int32())),
        ("[0:0][0:1]={{1,2}}", pa.list_(pa.int32())),
        ("{1,2", pa.list_(pa.int32())),
        ("1,2", pa.list_(pa.int32())),
        ("[0:1", pa.list_(pa.int32())),
        ("{1,x}", pa.list_(pa.int32())),
    ],
)
def test_the_error_names_the_column_and_the_value_that_does_not_fit(
    text: str, type_: pa.DataType
) -> None:
    fit = {"bool": "t", "date32[day]": "2024-01-01", "binary": "\\x00"}.get(str(type_))
    with pytest.raises(DatasetError) as caught:
        _read([None, *([fit] if fit else []), text, "later"], type_)

    assert caught.value.message.startswith(f"column 'c': {text!r} is not a {type_}; declare")
    assert caught.value.code == "dataset.schema"


def test_a_long_value_is_cut_in_the_error() -> None:
    with pytest.raises(DatasetError) as caught:
        _read(["9" * 10_000], pa.int64())
    assert len(caught.value.message) < 200
