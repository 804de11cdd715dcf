"""Values of credentials: well-formed ones of one kind, and stored as hashes alone."""

import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_management.credentials import values
from caraway_management.credentials.values import Prefix

ALPHABET = set(string.ascii_letters + string.digits)


@pytest.mark.parametrize("prefix", Prefix)
def test_value_is_of_its_kind_and_no_other(prefix: Prefix) -> None:
    value = values.make(prefix)
    assert [each for each in Prefix if values.is_well_formed(value, each)] == [prefix]
    assert set(value.removeprefix(prefix)) <= ALPHABET
    assert len(value) == 50


def test_values_differ_and_use_the_whole_alphabet() -> None:
    made = [values.make(Prefix.API_KEY) for _ in range(500)]
    assert len(set(made)) == 500
    assert {character for each in made for character in each[4:44]} == ALPHABET


@given(at=st.integers(4, 49), other=st.sampled_from(sorted(ALPHABET)))
def test_one_wrong_character_is_seen_without_a_look_up(at: int, other: str) -> None:
    value = values.make(Prefix.SESSION)
    changed = value[:at] + other + value[at + 1 :]
    assert values.is_well_formed(changed, Prefix.SESSION) == (changed == value)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value + "0",
        lambda value: value[:-1],
        lambda value: value.upper(),
        lambda value: " " + value,
        lambda value: value + "\n",
        lambda value: value.removeprefix("cwp_"),
        lambda value: "cwp_" + value,
        lambda value: "cwp_" + "\uff11" * 46,
        lambda value: "cwp_" + "\ud800" * 46,
        lambda value: value * 100_000,
        lambda value: "",
    ],
)
def test_other_texts_are_not_well_formed(change: Callable[[str], str]) -> None:
    assert not values.is_well_formed(
        change(values.make(Prefix.PERSONAL_TOKEN)), Prefix.PERSONAL_TOKEN
    )


def test_hash_matches_its_value_alone() -> None:
    one, other = values.make(Prefix.API_KEY), values.make(Prefix.API_KEY)
    stored = values.digest(one)
    assert values.matches(one, stored) and not values.matches(other, stored)
    assert not values.matches(stored, stored) and not values.matches("", stored)
    assert one not in stored and values.digest("é") != values.digest("e")


def test_hint_tells_the_kind_and_not_the_value() -> None:
    value = values.make(Prefix.CLIENT_SECRET)
    assert values.hint(value) == value[:12] and values.hint(value).startswith("cwo_")
