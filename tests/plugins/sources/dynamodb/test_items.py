from decimal import Decimal
from typing import Any

import pytest

from caraway_plugins.sources.documents.numbers import ExactNumber
from caraway_plugins.sources.dynamodb import items


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ({"S": ""}, ""),
        ({"N": "-12"}, -12),
        ({"N": "1.50"}, Decimal("1.5")),
        ({"N": "123456789012345678901234567890.12345678"},
         Decimal("123456789012345678901234567890.12345678")),
        ({"BOOL": False}, False),
        ({"NULL": True}, None),
        ({"B": b"\0"}, b"\0"),
        ({"SS": ["b", "a"]}, ["a", "b"]),
        ({"NS": ["10", "9.5"]}, [Decimal("9.5"), 10]),
        ({"BS": [b"b", b"a"]}, [b"a", b"b"]),
        ({"L": [{"N": "1"}, {"M": {"x": {"S": "y"}}}]}, [1, {"x": "y"}]),
    ],
)  # fmt: skip
def test_values(attribute: dict[str, Any], value: Any) -> None:
    assert items.value_of(attribute) == value


def test_numbers_with_a_point_keep_their_digits() -> None:
    assert isinstance(items.value_of({"N": "0.1"}), ExactNumber)


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (True, {"BOOL": True}),
        (1, {"N": "1"}),
        (Decimal("1E+5"), {"N": "100000"}),
        (Decimal("-0.10"), {"N": "-0.10"}),
        ("x", {"S": "x"}),
        (b"x", {"B": b"x"}),
        (Decimal("1E+130"), None),
        (Decimal("1." + "1" * 38), None),
        (1.5, None),
    ],
)
def test_values_of_filters(value: Any, attribute: Any) -> None:
    assert items.attribute_of(value) == attribute
