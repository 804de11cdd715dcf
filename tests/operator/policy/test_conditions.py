"""Conditions of a status: what holds, since when, and what is kept of the status before."""

from typing import Any

import pytest

from caraway_operator.policy import conditions

BEFORE: dict[str, Any] = {
    "conditions": [
        {"type": "Other", "status": "False"},
        {"type": "Ready", "status": "True", "reason": "AllReady", "message": "m",
         "observedGeneration": 1, "lastTransitionTime": "then"},
    ]
}  # fmt: skip


@pytest.mark.parametrize(
    ("against", "status", "reason", "message"),
    [([], "True", "Good", ""), (["a"], "False", "Bad", "a"), (["a", "b"], "False", "Bad", "a; b")],
)
def test_a_condition_holds_unless_something_speaks_against_it(
    against: list[str], status: str, reason: str, message: str
) -> None:
    assert conditions.listed("Ready", against, "Good", "Bad") == {
        "type": "Ready", "status": status, "reason": reason, "message": message
    }  # fmt: skip


def test_what_nobody_knows_is_unknown() -> None:
    assert conditions.condition("Ready", None, "R", "m")["status"] == "Unknown"


def test_messages_have_a_bounded_length() -> None:
    assert conditions.cut("x" * 4000) == "x" * 4000
    assert conditions.cut("x" * 4001) == "x" * 3999 + "…"
    assert len(conditions.listed("R", ["x" * 3000, "y" * 3000], "G", "B")["message"]) == 4000


@pytest.mark.parametrize(
    ("previous", "is_stopped", "reason", "status"),
    [
        (BEFORE, False, "AllReady", "True"),
        (BEFORE, True, "Stopped", "Unknown"),
        ({}, False, "NotAsked", "Unknown"),
        ({"conditions": None}, False, "NotAsked", "Unknown"),
    ],
)
def test_without_an_answer_the_condition_before_is_kept(
    previous: dict[str, Any], is_stopped: bool, reason: str, status: str
) -> None:
    kept = conditions.kept("Ready", previous, is_stopped)
    assert (kept["reason"], kept["status"]) == (reason, status)
    assert "lastTransitionTime" not in kept


@pytest.mark.parametrize(
    ("holds", "previous", "since"),
    [(True, BEFORE, "then"), (False, BEFORE, "now"), (None, BEFORE, "now"), (True, {}, "now")],
)
def test_the_time_is_that_of_the_last_change_of_the_status(
    holds: bool | None, previous: dict[str, Any], since: str
) -> None:
    dated = conditions.dated(conditions.condition("Ready", holds, "New", ""), previous, 5, "now")
    assert (dated["lastTransitionTime"], dated["observedGeneration"]) == (since, 5)
    assert dated["reason"] == "New"
