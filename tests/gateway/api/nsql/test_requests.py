"""Questions in bodies, and the forms in which they are answered."""

import json

import pytest

from caraway_assist.nsql import DataQuestion
from caraway_core.errors import InvalidRequestError
from caraway_gateway.api.nsql import requests
from caraway_serving.errors import RefusedRequestError
from caraway_serving.formats import Format


@pytest.mark.parametrize(
    ("accept", "form", "is_sql_only"),
    [
        (None, "json", False),
        ("*/*", "json", False),
        ("application/json", "json", False),
        ("application/sql", "text", True),
        ("text/csv", "csv", False),
        ("application/vnd.caraway.nsql.v1+json", "versioned", False),
        ("Application/vnd.Other.NSQL.v1+json", "versioned", False),
        ("text/csv;q=0.5, application/sql", "text", True),
    ],
)
def test_an_answer_has_the_form_that_is_accepted(
    accept: str | None, form: Format, is_sql_only: bool
) -> None:
    found = requests.answer_form(accept)
    assert (found.choice.format, found.is_sql_only) == (form, is_sql_only)


def test_the_media_type_of_another_runtime_is_answered_in_its_name() -> None:
    found = requests.answer_form("application/vnd.Other.nsql.v1+json")
    assert found.choice.media_type == "application/vnd.other.nsql.v1+json"


def test_a_client_of_streams_may_accept_events_alone() -> None:
    assert requests.answer_form("text/event-stream", is_streamed=True).choice.format == "json"
    with pytest.raises(RefusedRequestError):
        requests.answer_form("text/event-stream")


@pytest.mark.parametrize(
    ("body", "question", "is_streamed"),
    [
        ({"query": " q "}, DataQuestion("q"), False),
        ({"query": "q", "model": "", "stream": None, "datasets": None}, DataQuestion("q"), False),
        ({"query": "q", "stream": True, "datasets": []}, DataQuestion("q", datasets=()), True),
        (
            {"query": "q", "model": "m", "sampledataenabled": True, "datasets": ["a", "b"],
             "prompt_cache_key": "k"},
            DataQuestion("q", "m", ("a", "b"), True, "k"), False,
        ),
    ],
)  # fmt: skip
def test_a_body_is_a_question(
    body: dict[str, object], question: DataQuestion, is_streamed: bool
) -> None:
    asked = requests.parse(json.dumps(body).encode())
    assert (asked.question, asked.is_streamed) == (question, is_streamed)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the request body is not JSON"),
        (b"\xff", "the request body is not JSON"),
        (b'{"query": NaN}', "the request body is not JSON"),
        (b"[]", "must be an object with the field"),
        (b'"q"', "must be an object with the field"),
        (b"{}", 'the field "query" must be a text'),
        (b'{"query": " "}', 'the field "query" must be a text'),
        (b'{"query": ["q"]}', 'the field "query" must be a text'),
        (b'{"query": "q", "model": 1}', 'the field "model" must be a text'),
        (b'{"query": "q", "stream": "true"}', 'the field "stream" must be true or false'),
        (b'{"query": "q", "stream": 1}', 'the field "stream" must be true or false'),
        (b'{"query": "q", "datasets": "a"}', 'the field "datasets" must be a list'),
        (b'{"query": "q", "datasets": [1]}', 'the field "datasets" must be a list'),
        (b'{"query": "q", "modle": "m"}', 'unknown field "modle".*did you mean "model"'),
        (b'{"query": "q", "zzz": 1}', 'unknown field "zzz".*; known: "query"'),
    ],
)
def test_what_is_no_question_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        requests.parse(body)
