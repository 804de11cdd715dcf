"""Rows of the text protocol of MySQL become columns."""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_plugins.sources.mysql import decoding


def packet(*values: bytes | None) -> bytes:
    """Write a row as a server does."""
    written = b""
    for value in values:
        if value is None:
            written += b"\xfb"
            continue
        size = len(value)
        if size < 0xFB:
            written += bytes([size])
        elif size < 1 << 16:
            written += b"\xfc" + size.to_bytes(2, "little")
        elif size < 1 << 24:
            written += b"\xfd" + size.to_bytes(3, "little")
        else:
            written += b"\xfe" + size.to_bytes(8, "little")
        written += value
    return written


VALUES = (
    st.none() | st.binary(max_size=8) | st.sampled_from([b"x" * 250, b"x" * 251, b"x" * 70_000])
)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=6))
def test_values_of_any_length_are_those_of_the_server(
    rows: list[tuple[bytes | None, bytes | None, bytes | None]],
) -> None:
    columns = decoding.columns([packet(*row) for row in rows], 3)
    assert list(zip(*(each.to_pylist() for each in columns), strict=True)) == rows


def test_the_longest_form_of_a_length_is_read() -> None:
    written = b"\xfe" + (3).to_bytes(8, "little") + b"abc"
    (column,) = decoding.columns([written], 1)
    assert column.to_pylist() == [b"abc"]


@pytest.mark.parametrize(
    "packets",
    [[packet(b"a")], [packet(b"a", b"b", b"c")], [packet(b"a", b"b"), packet(b"a", b"b", b"c")]],
)
def test_rows_of_another_shape_are_an_error(packets: list[bytes]) -> None:
    with pytest.raises(ValueError, match="rows of another shape"):
        decoding.columns(packets, 2)


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        (b"-7", pa.int32(), -7),
        (b"18446744073709551615", pa.uint64(), 2**64 - 1),
        (b"1.5", pa.float64(), 1.5),
        (b"1", pa.bool_(), True),
        (b"0", pa.bool_(), False),
        (b"1.10", pa.decimal128(10, 2), Decimal("1.10")),
        (b"2024-02-29", pa.date32(), date(2024, 2, 29)),
        (b"2024-02-29 01:02:03.5", pa.timestamp("us"), datetime(2024, 2, 29, 1, 2, 3, 500_000)),
        ("ä".encode(), pa.string(), "ä"),
        (b"\xff\x00", pa.binary(), b"\xff\x00"),
    ],
)
def test_texts_have_the_type_of_their_column(
    text: bytes, type_: pa.DataType, value: object
) -> None:
    column = decoding.typed(pa.array([text, None], pa.large_binary()), type_)
    assert column.type == type_
    assert column.to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        (b"x", pa.int32()), (b"2147483648", pa.int32()), (b"-1", pa.uint8()), (b"2", pa.bool_()),
        (b"", pa.bool_()), (b"0000-00-00", pa.date32()), (b"\xff", pa.string()),
    ],
)  # fmt: skip
def test_values_of_another_type_are_errors(text: bytes, type_: pa.DataType) -> None:
    with pytest.raises(pa.ArrowException):
        decoding.typed(pa.array([text], pa.large_binary()), type_)


def test_moments_with_a_zone_are_in_utc() -> None:
    column = pa.array([b"2024-01-01 00:00:00"], pa.large_binary())
    moment = decoding.typed(column, pa.timestamp("s", "UTC"))
    assert moment.cast(pa.int64()).to_pylist() == [1_704_067_200]
