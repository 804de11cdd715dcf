"""Asynchronous queries over Flight alone: what is tried again, and what needs HTTP."""

import json
from typing import Any

import pytest

from caraway.errors import BrokenResponseError, InvalidEndpointError, UnreachableError
from caraway.rows.formats import ResultFormat
from caraway.statements.flight_queries import FlightQueries
from tests.client.runtime import Pauses

AWAY = UnreachableError("http://away", "refused")


class Actions:
    """Answers actions in turn, or raises what is given in place of an answer."""

    def __init__(self, *answers: object) -> None:
        self.asked: list[tuple[str, object]] = []
        self._answers = list(answers)

    def act(self, name: str, body: bytes, timeout_s: float) -> bytes:
        self.asked.append((name, json.loads(body)))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()


def queries(*answers: object, retries: int = 3) -> tuple[FlightQueries, Actions, Pauses]:
    actions, pauses = Actions(*answers), Pauses()
    any_actions: Any = actions
    return FlightQueries(any_actions, retries, pauses), actions, pauses


def test_a_query_is_submitted_once() -> None:
    made, actions, _ = queries({"query_id": "q-1"})
    assert made.submit({"sql": "SELECT 1"}).id == "q-1"
    assert actions.asked == [("SubmitAsyncQuery", {"sql": "SELECT 1"})]
    made, actions, pauses = queries(AWAY)
    with pytest.raises(UnreachableError):
        made.submit({"sql": "INSERT INTO t VALUES (1)"})
    assert len(actions.asked) == 1 and pauses.seconds == []


def test_an_answer_without_an_id_is_broken() -> None:
    made, _, _ = queries({"id": "q-1"})
    with pytest.raises(BrokenResponseError, match="expected a query_id"):
        made.submit({"sql": "SELECT 1"})


def test_the_status_is_asked_again_while_the_server_is_away() -> None:
    made, actions, pauses = queries(AWAY, AWAY, {"status": "RUNNING"})
    assert made.status_of("q-1", 0) == {"status": "RUNNING"}
    assert actions.asked == [("GetAsyncQueryStatus", {"query_id": "q-1"})] * 3
    assert len(pauses.seconds) == 2


def test_tries_end() -> None:
    made, actions, _ = queries(*[AWAY] * 20, retries=0)
    with pytest.raises(UnreachableError):
        made.cancel("q-1")
    assert actions.asked[0] == ("CancelAsyncQuery", {"query_id": "q-1"})
    assert len(actions.asked) < 20


def test_what_needs_http_says_so() -> None:
    made, actions, _ = queries()
    for call in (
        lambda: made.submit({"sql": "SELECT 1"}, "key"),
        lambda: made.list("", 10),
        lambda: made.chunks("q-1", ResultFormat.CSV),
    ):
        with pytest.raises(InvalidEndpointError, match=r"needs? HTTP"):
            call()
    assert actions.asked == []
