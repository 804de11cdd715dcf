import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_plugins.sources.documents import numbers
from caraway_plugins.sources.documents.numbers import ExactNumber


@given(st.decimals(allow_nan=False, allow_infinity=False, places=20))
def test_double_of_a_number_has_its_digits_or_is_an_error(value: Decimal) -> None:
    number = ExactNumber(value)
    if number.is_double:
        assert Decimal(repr(float(number))) == value
    else:
        with pytest.raises(ValueError, match="more digits than a double"):
            float(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_is_one(value: float) -> None:
    assert float(ExactNumber(repr(value))) == value


@pytest.mark.parametrize("text", ["5", "5.0", "-0", "1E+3", "9007199254740992"])
def test_whole_numbers_are_integers(text: str) -> None:
    number = numbers.exact(text)
    assert type(number) is int and number == Decimal(text)


@pytest.mark.parametrize("text", ["9007199254740993", "1E+125", "1E-130", "0.1"])
def test_other_numbers_are_kept(text: str) -> None:
    number = numbers.exact(text)
    assert isinstance(number, ExactNumber) and number == Decimal(text)
    copy = pickle.loads(pickle.dumps(number))
    assert (type(copy), copy) == (ExactNumber, number)
