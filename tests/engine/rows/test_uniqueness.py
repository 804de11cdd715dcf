"""Unique indexes while rows change: which new rows are refused."""

from collections.abc import Sequence
from typing import Any

import pytest

from caraway_engine.rows import uniqueness
from caraway_engine.rows.uniqueness import DuplicateError
from tests.engine.rows.key_rows import A, B, Row, T, index, pieces


def check(
    new: list[Row], base: list[Row], dead: Sequence[int] = (), logged: Sequence[Row] = (),
    dead_log: Sequence[int] = (),
) -> None:  # fmt: skip
    held = pieces(base)
    places: dict[Any, list[int]] = {}
    for number, row in enumerate(logged):
        places.setdefault(row[:2], []).append(number)
    uniqueness.check(
        T, ("k", "s"), pieces(new)[0].batch, held, index(held, "k", "s"),
        [n in dead for n in range(len(base))], places,
        [n in dead_log for n in range(len(logged))],
    )  # fmt: skip


NULL = (None, "a", 1.0)


@pytest.mark.parametrize(
    "case",
    [
        {"new": [A, B], "base": []},
        {"new": [A], "base": [B]},
        {"new": [NULL, NULL], "base": [NULL]},
        {"new": [A], "base": [A], "dead": [0]},
        {"new": [A], "base": [A, A], "dead": [0, 1]},
        {"new": [A], "base": [], "logged": [B, A], "dead_log": [1]},
        {"new": [], "base": [A, A]},
    ],
)
def test_new_rows_that_are_like_no_living_one_are_taken(case: dict[str, Any]) -> None:
    check(**case)


@pytest.mark.parametrize(
    "case",
    [
        {"new": [A, A], "base": []},
        {"new": [B, A], "base": [A]},
        {"new": [A], "base": [A, A], "dead": [0]},
        {"new": [A], "base": [], "logged": [A]},
        {"new": [A], "base": [], "logged": [A, B, A], "dead_log": [0]},
    ],
)
def test_new_rows_that_are_like_a_living_one_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(DuplicateError, match=r"\(k, s\) = 1, 'a' would be duplicated"):
        check(**case)
