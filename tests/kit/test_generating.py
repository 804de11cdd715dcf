"""Generated inputs of the short runs."""

import pytest
from hypothesis import note
from hypothesis import strategies as st

from tests.kit import generating


def test_each_input_is_checked_once() -> None:
    small = st.integers(0, 3)
    checked: list[int] = []
    generating.check_same(small, 50, checked.append)
    assert sorted(checked) == [0, 1, 2, 3]
    again: list[int] = []
    generating.check_same(small, 50, again.append)
    assert again == checked


def test_a_failure_names_the_smallest_input() -> None:
    def check(number: int) -> None:
        note(f"number {number}")
        assert number < 17

    with pytest.raises(AssertionError) as caught:
        generating.check_same(st.integers(0, 1_000), 100, check)
    assert "number 17" in caught.value.__notes__


def test_a_failure_that_does_not_come_again_is_a_failure() -> None:
    failed: list[int] = []

    def check(number: int) -> None:
        if not failed:
            failed.append(number)
            raise AssertionError("once")

    with pytest.raises(AssertionError, match="once"):
        generating.check_same(st.integers(0, 1_000), 10, check)
