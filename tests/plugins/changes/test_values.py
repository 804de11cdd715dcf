"""Single values: exactly as they were sent, or an error that does not show them."""

import base64
import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_plugins.changes import values
from caraway_plugins.changes.meanings import UNKNOWN, Meaning
from caraway_plugins.changes.values import UNAVAILABLE, UnfitError, UnloggedError

MILLIS = Meaning("io.debezium.time.Timestamp")
UTC_MICROS = pa.timestamp("us", "UTC")
FIXED = [dt.timezone(dt.timedelta(minutes=m)) for m in (-330, -1, 0, 1, 845)]
MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=st.none())


def _read(value: Any, type_: pa.DataType, meaning: Meaning = UNKNOWN) -> Any:
    return values.reader(type_, meaning)(value)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("1e500", pa.float64()),
        ("-1e500", pa.float64()),
        (Decimal("1e500"), pa.float64()),
        ("9" * 310, pa.float64()),
        ("0x10", pa.float64()),
        ("1_000", pa.float64()),
        (" 1", pa.float64()),
        ("\N{FULLWIDTH DIGIT ONE}", pa.float64()),
        ("1e", pa.float64()),
        (".", pa.float64()),
        ("", pa.float64()),
        (True, pa.float64()),
        ("1_000", pa.int64()),
        ("١٢", pa.int64()),
        ("1\n", pa.int64()),
        ("1.0", pa.int64()),
        (1.0, pa.int64()),
        (Decimal(1), pa.int64()),
        (True, pa.int64()),
        ("9" * 81, pa.int64()),
        ("True", pa.bool_()),
        ("1", pa.bool_()),
        (2, pa.bool_()),
        (1.0, pa.bool_()),
        ("nan", pa.decimal128(5, 2)),
        ("1e99999", pa.decimal128(5, 2)),
        (True, pa.decimal128(5, 2)),
        ({"scale": True, "value": "AQ=="}, pa.decimal128(5, 2)),
        ({"scale": 1001, "value": "AQ=="}, pa.decimal128(5, 2)),
        ({"scale": 1, "value": "not base64"}, pa.decimal128(5, 2)),
        ({"scale": 1, "value": 7}, pa.decimal128(5, 2)),
        ({"scale": 1}, pa.decimal128(5, 2)),
        ({"scale": 0, "value": base64.b64encode(b"\x7f" * 33).decode()}, pa.decimal256(76, 0)),
        ("YWJj\n", pa.binary()),
        ("YW Jj", pa.binary()),
        ("YWJ", pa.binary()),
        (5, pa.binary()),
        (5, pa.string()),
        (b"x", pa.string()),
        ("2024-02-30", pa.date32()),
        ("2024-01-02T00:00:01", pa.date32()),
        ("2024-01-02T00:00:00.000000001", pa.date32()),
        ("2024-01-02T00:00:00+01:00", pa.date32()),
        (dt.datetime(2024, 1, 2), pa.date32()),
        (1.0, pa.date32()),
        ("infinity", UTC_MICROS),
        ("0044-03-15 BC", UTC_MICROS),
        ("0001-01-01T00:00:00+05:00", UTC_MICROS),
        ("9999-12-31T23:59:59-05:00", UTC_MICROS),
        ("2024-01-02T00:00:00. 5", UTC_MICROS),
        (True, UTC_MICROS),
        ("23:59:60", pa.time64("us")),
        ("T10:00:00", pa.time64("us")),
        ("", pa.time64("us")),
        (-1, pa.time64("us")),
        (86_400_000_000, pa.time64("us")),
        (True, pa.time64("us")),
    ],
)
def test_what_is_not_a_value_of_the_column_is_refused_without_showing_it(
    value: Any, type_: pa.DataType
) -> None:
    with pytest.raises(UnfitError, match="expected") as caught:
        _read(value, type_)

    assert not str(value).strip() or len(str(value)) < 3 or str(value) not in str(caught.value)


@pytest.mark.parametrize("text", ["nan", "NaN", "Infinity", "-Infinity", "inf", "-INF"])
def test_doubles_that_are_no_numbers_are_written_as_words(text: str) -> None:
    found = _read(text, pa.float64())
    assert math.isnan(found) if text.lower() == "nan" else found == float(text)


@settings(max_examples=40)
@given(st.floats(allow_nan=False))
def test_a_double_is_the_same_as_text_and_as_a_number(value: float) -> None:
    assert _read(value, pa.float64()) == value
    assert _read(repr(value), pa.float64()) == value
    if math.isfinite(value):
        assert _read(Decimal(value), pa.float64()) == value


@settings(max_examples=40)
@given(st.integers(-(10**76), 10**76), st.integers(-20, 60))
def test_connects_bytes_of_a_decimal_are_its_digits(unscaled: int, scale: int) -> None:
    size = unscaled.bit_length() // 8 + 1
    text = base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()
    expected = Decimal(f"{unscaled}e{-scale}")
    type_ = pa.decimal256(76, 10)

    assert _read(text, type_, Meaning(scale=scale)) == expected
    assert _read({"scale": scale, "value": text}, type_) == expected


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.lists(JSON, max_size=3))
def test_nested_values_are_written_as_json_with_all_their_digits(value: list[Any]) -> None:
    again = json.loads(_read(value, pa.string()), parse_float=Decimal)

    def numbers_as_decimals(each: Any) -> Any:
        if isinstance(each, dict):
            return {name: numbers_as_decimals(inner) for name, inner in each.items()}
        if isinstance(each, list):
            return [numbers_as_decimals(inner) for inner in each]
        return Decimal(each) if type(each) is int else each

    assert numbers_as_decimals(again) == numbers_as_decimals(value)


def test_values_of_avro_inside_of_others_are_written_as_connect_writes_them() -> None:
    nested = {
        "raw": b"\x00\xff",
        "at": dt.datetime(2024, 1, 2, tzinfo=dt.UTC),
        "p": Decimal("1.50"),
    }
    written = _read(nested, pa.string())
    assert written == '{"raw":"AP8=","at":"2024-01-02T00:00:00+00:00","p":1.50}'


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_what_the_database_did_not_log_is_never_a_value(type_: pa.DataType) -> None:
    with pytest.raises(UnloggedError, match="REPLICA IDENTITY FULL"):
        _read(UNAVAILABLE, type_)
    for unlogged in (UNAVAILABLE.encode(), base64.b64encode(UNAVAILABLE.encode()).decode()):
        with pytest.raises(UnloggedError):
            _read(unlogged, pa.binary())


@settings(max_examples=40)
@given(MOMENTS, st.sampled_from([None, *FIXED]), st.sampled_from(["s", "ms", "us", "ns"]))
def test_a_moment_is_the_same_in_every_form(
    moment: dt.datetime, zone: dt.tzinfo | None, unit: str
) -> None:
    zoned = moment.replace(tzinfo=zone)
    if zone is not None:
        moment = zoned.astimezone(dt.UTC).replace(tzinfo=None)
    passed = moment - dt.datetime(1970, 1, 1)
    micros = (passed.days * 86_400 + passed.seconds) * 10**6 + passed.microseconds
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    expected = micros * per_second // 10**6

    type_ = pa.timestamp(unit)
    texts = [zoned.isoformat(), zoned.isoformat(" "), zoned.isoformat().replace(".", ",")]
    basic = moment.strftime("%Y%m%dT%H%M%S.%f").zfill(22)
    for each in (zoned, *texts, basic):
        assert _read(each, type_) == expected, each
    meant = Meaning("io.debezium.time.MicroTimestamp")
    assert _read(micros, type_, meant) == expected


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("1970-01-01T00:00:00.123456789", 123_456_789),
        ("1970-01-01T00:00:00.1234567891234", 123_456_789),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("1970-01-01T00:00:00,5Z", 500_000_000),
        ("19700101T000000.25", 250_000_000),
        ("1970-01-01T00:00:01.5+00:00:01", 500_000_000),
        ("1970-01-01T00:00:00.999999999-00:00", 999_999_999),
        ("1969-12-31T23:59:59.5", -500_000_000),
    ],
)
def test_fractions_of_a_second_are_kept(text: str, nanos: int) -> None:
    assert _read(text, pa.timestamp("ns")) == nanos


@settings(max_examples=40)
@given(st.integers(0, 86_400 * 10**6 - 1), st.sampled_from(["s", "ms", "us", "ns"]))
def test_a_time_of_day_is_the_same_in_every_form(micros: int, unit: str) -> None:
    type_ = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    expected = micros * per_second // 10**6
    as_time = (dt.datetime.min + dt.timedelta(microseconds=micros)).time()

    assert _read(as_time, type_) == expected
    assert _read(as_time.isoformat(), type_) == expected
    assert _read(micros, type_, Meaning("io.debezium.time.MicroTime")) == expected


@settings(max_examples=40)
@given(st.dates())
def test_a_date_is_the_same_in_every_form(date: dt.date) -> None:
    days = (date - dt.date(1970, 1, 1)).days
    assert _read(days, pa.date32()) == days
    assert _read(date, pa.date32()) == date
    assert _read(date.isoformat(), pa.date32()) == days
    assert _read(f"{date.isoformat()}T00:00:00Z", pa.date32()) == days
    assert _read(days * 86_400_000, pa.date32(), MILLIS) == days
    with pytest.raises(UnfitError, match="without a time of day"):
        _read(days * 86_400_000 + 1, pa.date32(), MILLIS)
