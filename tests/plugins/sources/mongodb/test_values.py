from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions

from caraway_plugins.sources.documents.numbers import ExactNumber
from caraway_plugins.sources.mongodb import connecting, values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1),
        (bson.Int64(7), 7),
        (2**62, 2**62),
        (1.5, 1.5),
        ("ä", "ä"),
        (None, None),
        (True, True),
        (b"\0", b"\0"),
        (bson.Binary(b"0123456789abcdef", 4), b"0123456789abcdef"),
        (bson.ObjectId("0123456789abcdef01234567"), "0123456789abcdef01234567"),
        (datetime(2024, 1, 1, 0, 0, 0, 5_000, UTC), datetime(2024, 1, 1, 0, 0, 0, 5_000, UTC)),
        (bson.Decimal128("1.50"), Decimal("1.50")),
        (bson.DatetimeMS(253402300800000), 253402300800000),
        ([1, {"a": bson.Decimal128("2")}], [1, {"a": Decimal(2)}]),
        (bson.Code("f()"), {"$code": "f()"}),
        (bson.Timestamp(5, 6), {"$timestamp": {"t": 5, "i": 6}}),
        (bson.MinKey(), {"$minKey": 1}),
    ],
)
def test_values(value: Any, expected: Any) -> None:
    codec: CodecOptions[dict[str, Any]] = connecting.CODEC
    document = bson.decode(bson.encode({"x": value}), codec_options=codec)
    assert values.values_of(document) == {"x": expected}


def test_integers_that_doubles_do_not_hold_are_exact() -> None:
    assert isinstance(values.value_of(2**53 + 1), ExactNumber)
    assert type(values.value_of(bson.Int64(2**53))) is int
