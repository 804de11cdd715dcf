"""Decimals that databases send as text: none loses digits."""

from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_plugins.sources.decimal_texts import decimals


@pytest.mark.parametrize(
    "text",
    ["1.5", "-0.00000000000001", "1E-10", f"-{'9' * 24}.{'9' * 14}", "0.10000000000000000000"],
)
def test_numbers_are_whole(text: str) -> None:
    (found,) = decimals(pa.array([text]), pa.decimal128(38, 14)).to_pylist()
    assert found == Decimal(text)


@pytest.mark.parametrize("text", [f"{'9' * 28}.{'9' * 10}0000", "9" * 62, "9" * 200, "x", "1e99"])
def test_a_number_with_too_many_digits_is_an_error(text: str) -> None:
    with pytest.raises(pa.ArrowException):
        decimals(pa.array([None, text]), pa.decimal128(38, 14))


def test_columns_without_values_stay_empty() -> None:
    assert decimals(pa.array([None, None], pa.string()), pa.decimal128(5, 2)).null_count == 2
    wide = decimals(pa.array(["9" * 70]), pa.decimal256(76, 2)).to_pylist()
    assert wide == [Decimal("9" * 70)]
