"""Questions in words: the requests, and the reading of the answers."""

import json
from collections.abc import Iterator

import pytest

from caraway import ApiError, AsyncClient, BrokenResponseError, Client
from tests.client.runtime import Answer, FakeRuntime, Pauses, pausing

NSQL, SEARCH = "POST /v1/nsql", "POST /v1/search"
NSQL_TYPE = "application/vnd.caraway.nsql.v1+json"


@pytest.fixture
def client(runtime: FakeRuntime) -> Iterator[Client]:
    with pausing(Pauses(), "secret", http_url=runtime.endpoint) as client:
        yield client


def answers(runtime: FakeRuntime, route: str, document: object) -> None:
    runtime.answers(route, Answer(body=json.dumps(document).encode()))


def test_only_given_options_are_sent(runtime: FakeRuntime, client: Client) -> None:
    answers(runtime, NSQL, [])
    answers(runtime, SEARCH, {"results": [], "duration_ms": 1})
    client.nsql("how many?")
    client.nsql("how many?", datasets=("a", "b"), model="m", sample_data_enabled=False)
    client.search("tea")
    client.search("tea", datasets=[], limit=3, where="a > 1", additional_columns=("b",),
                  keywords=["green"])  # fmt: skip
    assert [json.loads(each.body) for each in runtime.asked] == [
        {"query": "how many?"},
        {"query": "how many?", "datasets": ["a", "b"], "model": "m", "sample_data_enabled": False},
        {"text": "tea"},
        {"text": "tea", "datasets": [], "limit": 3, "where": "a > 1", "additional_columns": ["b"],
         "keywords": ["green"]},
    ]  # fmt: skip
    headers = runtime.asked[0].headers
    assert headers["accept"].startswith(NSQL_TYPE)
    assert (headers["content-type"], headers["x-api-key"]) == ("application/json", "secret")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"row_count": 1, "schema": {"fields": [{}]}, "data": [{"n": 1}], "sql": "s"}, {}),
        ({"row_count": 0, "data": [], "sql": "s"}, {"schema": {"fields": []}}),
        ([{"n": 1}], {"row_count": 1, "schema": {"fields": []}, "data": [{"n": 1}], "sql": ""}),
    ],
)  # fmt: skip
def test_every_form_of_an_answer_has_all_fields(
    runtime: FakeRuntime, client: Client, sent: object, expected: dict[str, object]
) -> None:
    answers(runtime, NSQL, sent)
    given = sent if isinstance(sent, dict) else {}
    assert client.nsql("how many?") == {**given, **expected}


def test_statement_is_returned_without_running_it(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(NSQL, Answer(body=b"SELECT count(*) FROM t\n"))
    assert client.nsql_generate_sql("how many?", model="m") == "SELECT count(*) FROM t"
    assert runtime.asked[0].headers["accept"] == "application/sql"


def test_matches_have_all_fields(runtime: FakeRuntime, client: Client) -> None:
    full = {"matches": {"body": ["tea"]}, "data": {"a": 1}, "primary_key": {"id": 1},
            "dataset": "d"}  # fmt: skip
    sent = [
        {**full, "_score": 0.5},
        {"dataset": "d", "_score": 0.25},
        {"dataset": "d", "score": 0.1},
    ]
    answers(runtime, SEARCH, {"results": sent, "duration_ms": 7})
    found = client.search("tea")
    empty = {"matches": {}, "data": {}, "primary_key": {}, "dataset": "d"}
    assert found["duration_ms"] == 7
    assert found["results"] == [
        {**full, "score": 0.5}, {**empty, "score": 0.25}, {**empty, "score": 0.1}
    ]  # fmt: skip


def test_refusals_and_garbage_are_errors(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(SEARCH, Answer(400, b'{"error": "no dataset can be searched"}'))
    with pytest.raises(ApiError, match="no dataset can be searched"):
        client.search("tea")
    answers(runtime, SEARCH, {"results": ["tea"]})
    with pytest.raises(BrokenResponseError, match="list of results"):
        client.search("tea")
    runtime.answers(NSQL, Answer(400, b"model 'm' not found"))
    with pytest.raises(ApiError, match="model 'm' not found"):
        client.nsql("how many?", model="m")


async def test_async_client_asks_the_same(runtime: FakeRuntime) -> None:
    answers(runtime, NSQL, [{"n": 1}])
    answers(runtime, SEARCH, {"results": [], "duration_ms": 1})
    async with AsyncClient("secret", http_url=runtime.endpoint) as client:
        assert (await client.nsql("how many?", model="m"))["data"] == [{"n": 1}]
        assert (await client.nsql_generate_sql("how many?")).startswith("[")
        assert (await client.search("tea", limit=1))["results"] == []
