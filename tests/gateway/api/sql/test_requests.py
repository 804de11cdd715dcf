"""Bodies of `/v1/sql`: text, JSON, and everything that is neither."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError
from caraway_gateway.api.sql import requests
from caraway_gateway.api.sql.requests import SqlBody

JSON = "application/json"


@pytest.mark.parametrize(
    "content_type", [None, "", "text/plain", "application/sql", "json", "x; a=+json"]
)
def test_body_is_sql_where_its_type_does_not_say_json(content_type: str | None) -> None:
    text = '{"sql": "SELECT 1"}'
    assert requests.parse(text.encode(), content_type) == SqlBody(text)


@pytest.mark.parametrize(
    "content_type",
    [JSON, "APPLICATION/JSON", " application/json ; charset=utf-8", "application/vnd.x+json"],
)
def test_json_is_recognised_by_its_type(content_type: str) -> None:
    assert requests.parse(b'{"sql": "SELECT 1"}', content_type) == SqlBody("SELECT 1")


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("null", {}),
        ("{}", {}),
        ("[]", {}),
        ("[1, null, [2]]", {"1": 1, "2": None, "3": [2]}),
        ('{"a": 1, "$b": "x", ":c": true}', {"a": 1, "b": "x", "c": True}),
    ],
)
def test_parameters_are_keyed_by_placeholder(parameters: str, expected: object) -> None:
    body = f'{{"sql": "SELECT 1", "parameters": {parameters}}}'
    assert requests.parse(body.encode(), JSON).parameters == expected


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"SELECT 1", "text/plain"),
        (b'{"sql": "SELECT 1"', "not JSON"),
        (b'{"sql": "SELECT 1"} x', "not JSON"),
        (b"[]", "object"),
        (b'"SELECT 1"', "object"),
        (b"null", "object"),
        (b"{}", '"sql"'),
        (b'{"sql": 1}', "string"),
        (b'{"sql": null}', "string"),
        (b'{"sql": ["SELECT 1"]}', "string"),
        (b'{"sql": "", "parameters": 1}', "parameters"),
        (b'{"sql": "", "parameters": "x"}', "parameters"),
        (b'{"sql": "", "parametrs": {}}', 'mean "parameters"'),
        (b'{"SQL": "SELECT 1"}', "unknown field"),
        (b'{"sql": "", "zzz": 1}', 'unknown field "zzz"'),
        (b"[" * 100_000, "not JSON"),
        (b'{"sql": "\xff"}', "UTF-8"),
    ],
)
def test_other_json_is_refused_with_what_is_wrong(body: bytes, words: str) -> None:
    with pytest.raises(InvalidQueryError) as raised:
        requests.parse(body, JSON)
    assert words in raised.value.message
    assert len(raised.value.message) < 1_000


@pytest.mark.parametrize(("body", "at"), [(b"SELECT '\xe9'", 8), (b"\xff\xfeS", 0), (b"a\xc3", 1)])
def test_text_that_is_not_utf8_says_where(body: bytes, at: int) -> None:
    with pytest.raises(InvalidQueryError, match=f"byte {at} "):
        requests.parse(body, "text/plain")


@pytest.mark.parametrize("content_type", [JSON, "text/plain"])
def test_mark_of_the_byte_order_is_no_part_of_the_statement(content_type: str) -> None:
    text = '{"sql": "SELECT 1"}' if content_type == JSON else "SELECT 1"
    assert requests.parse(b"\xef\xbb\xbf" + text.encode(), content_type).sql == "SELECT 1"


@settings(max_examples=100, derandomize=True)
@given(st.text(max_size=40))
def test_statement_of_any_letters_arrives_unchanged(sql: str) -> None:
    if sql.startswith("\ufeff"):
        return
    assert requests.parse(sql.encode(), None).sql == sql
    assert requests.parse(json.dumps({"sql": sql}).encode(), JSON).sql == sql


@settings(max_examples=100, derandomize=True)
@given(st.binary(max_size=60), st.sampled_from([JSON, None, "a+json"]))
def test_any_bytes_are_a_statement_or_a_refusal(body: bytes, content_type: str | None) -> None:
    try:
        assert isinstance(requests.parse(body, content_type).sql, str)
    except InvalidQueryError as exc:
        assert exc.message
