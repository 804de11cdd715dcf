"""Bounds are those of the values, in Iceberg's form of them."""

import struct

import pyarrow as pa

from caraway_plugins.iceberg import bounds


def packed(own: pa.DataType, kind: str, value: object, is_upper: bool = False) -> bytes | None:
    return bounds.packer(own, kind)(bounds.ordered(own)(value), is_upper)


def test_moments_become_microseconds_that_still_bound() -> None:
    second = pa.timestamp("s")
    assert packed(second, "timestamp", 3) == struct.pack("<q", 3_000_000)
    assert packed(pa.timestamp("ms"), "timestamp", 3) == struct.pack("<q", 3_000)
    nanos = pa.timestamp("ns", "UTC")
    assert packed(nanos, "timestamptz", -1_500) == struct.pack("<q", -2)
    assert packed(nanos, "timestamptz", 1_500, is_upper=True) == struct.pack("<q", 2)


def test_decimals_are_the_shortest_signed_bytes() -> None:
    type_ = pa.decimal128(30, 2)
    kind = "decimal(30, 2)"
    assert packed(type_, kind, (127).to_bytes(13, "big")) == b"\x7f"
    assert packed(type_, kind, (128).to_bytes(13, "big")) == b"\x00\x80"
    assert packed(type_, kind, (-128).to_bytes(13, "big", signed=True)) == b"\x80"
    assert packed(pa.decimal128(9, 2), "decimal(9, 2)", -129) == b"\xff\x7f"
    assert packed(pa.decimal128(9, 2), "decimal(9, 2)", 0) == b"\x00"


def test_decimals_compare_by_value_and_not_by_bytes() -> None:
    value = bounds.ordered(pa.decimal128(30, 2))
    low, high = (-5).to_bytes(13, "big", signed=True), (3).to_bytes(13, "big")
    assert low > high
    assert value(low) < value(high)


def test_zeros_and_values_that_are_no_numbers() -> None:
    assert packed(pa.float64(), "double", 0.0) == struct.pack("<d", -0.0)
    assert packed(pa.float64(), "double", -0.0, is_upper=True) == struct.pack("<d", 0.0)
    assert bounds.ordered(pa.float64())(float("nan")) is None


def test_long_texts_are_cut_at_characters_and_still_bound() -> None:
    text = "é" * 40
    low = packed(pa.string(), "string", text.encode())
    high = packed(pa.string(), "string", text.encode(), is_upper=True)
    assert low == ("é" * 16).encode()
    assert high == ("é" * 15 + "ê").encode()
    assert low is not None and high is not None
    assert low <= text.encode() <= high
    before_surrogates = ("\ud7ff" * 20).encode()
    assert (
        packed(pa.string(), "string", before_surrogates, is_upper=True)
        == ("\ud7ff" * 9 + "\ue000").encode()
    )
    highest = ("\U0010ffff" * 20).encode()
    assert packed(pa.string(), "string", highest, is_upper=True) is None
    assert packed(pa.string(), "string", b"\xff") is None


def test_long_bytes_are_cut_and_still_bound() -> None:
    assert packed(pa.binary(), "binary", b"\x01" * 40) == b"\x01" * 32
    assert packed(pa.binary(), "binary", b"\x01" * 40, is_upper=True) == b"\x01" * 31 + b"\x02"
    assert packed(pa.binary(), "binary", b"\x01\xff" + b"\xff" * 40, is_upper=True) == b"\x02"
    assert packed(pa.binary(), "binary", b"\xff" * 40, is_upper=True) is None
    assert packed(pa.bool_(), "boolean", True) == b"\x01"
