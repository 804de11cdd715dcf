import datetime as dt
import json
from typing import Any

import pytest

from caraway.client import Client
from caraway.errors import ApiError, BrokenResponseError
from caraway.routes import ingests
from tests.client.routes.ingesting import ROUTE, applied
from tests.client.runtime import Answer, FakeRuntime, Pauses, pausing

EVENT = {"op": "c", "after": {"id": 1}}


def client(runtime: FakeRuntime) -> Client:
    return pausing(Pauses(), http_url=runtime.endpoint)


def test_events_are_sent_as_lines_and_counted(runtime: FakeRuntime) -> None:
    runtime.answers(ROUTE, applied(4))
    events: list[Any] = [EVENT, None, '{\n "op": "t"\n}\n', b'{"op":"t"}\r\n', "", b"\n"]

    with client(runtime) as asked:
        assert asked.ingest("orders", events) == 4

    sent = runtime.asked[0]
    assert sent.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(each) for each in sent.body.split(b"\n")] == [
        EVENT, None, {"op": "t"}, {"op": "t"},
    ]  # fmt: skip


def test_dates_are_sent_as_strings(runtime: FakeRuntime) -> None:
    runtime.answers(ROUTE, applied(1))

    with client(runtime) as asked:
        asked.ingest("orders", [{"op": "c", "after": {"day": dt.date(2024, 1, 2)}}])

    assert json.loads(runtime.asked[0].body)["after"] == {"day": "2024-01-02"}


def test_each_batch_has_its_own_idempotency_key(runtime: FakeRuntime) -> None:
    runtime.answers(ROUTE, applied(2), applied(2), applied(1))

    with client(runtime) as asked:
        assert list(asked.ingests("orders", [EVENT] * 5, 2)) == [2, 2, 1]

    assert [each.body.count(b"op") for each in runtime.asked] == [2, 2, 1]
    assert len({each.headers["idempotency-key"] for each in runtime.asked}) == 3


def test_batches_of_large_events_are_limited_by_size() -> None:
    large = b"x" * (ingests.BATCH_BYTES // 3 + 1)

    sizes = [len(batch) for batch in ingests.split_batches([large] * 5 + [b""], 1000)]

    assert sizes == [2, 2, 1]


def test_without_events_nothing_is_sent(runtime: FakeRuntime) -> None:
    with client(runtime) as asked:
        assert asked.ingest("orders", []) == 0
    assert not runtime.asked


@pytest.mark.parametrize(
    "passing", [Answer(503), Answer(504), Answer(200, b'{"applied', breaks_off=True)]
)
def test_a_batch_is_retried_with_the_same_key(runtime: FakeRuntime, passing: Answer) -> None:
    runtime.answers(ROUTE, passing, applied(1))

    with client(runtime) as asked:
        assert asked.ingest("orders", [EVENT]) == 1

    first, second = runtime.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


def test_a_rejected_batch_stops_the_rest(runtime: FakeRuntime) -> None:
    runtime.answers(ROUTE, applied(1), Answer(400, b'{"message":"event 1: it has no \'op\'"}'))

    with client(runtime) as asked, pytest.raises(ApiError, match="event 1"):
        list(asked.ingests("orders", [EVENT] * 3, 1))

    assert len(runtime.asked) == 2


@pytest.mark.parametrize("body", [b"{}", b'{"applied":"1"}', b"[]", b"ok"])
def test_a_response_without_a_count_is_an_error(runtime: FakeRuntime, body: bytes) -> None:
    runtime.answers(ROUTE, Answer(body=body))

    with client(runtime) as asked, pytest.raises(BrokenResponseError):
        asked.ingest("orders", [EVENT])


def test_names_are_quoted_in_the_path(runtime: FakeRuntime) -> None:
    with client(runtime) as asked, pytest.raises(ApiError):
        asked.ingest("../a b?", [EVENT])

    assert runtime.asked[0].path == "/v1/datasets/..%2Fa%20b%3F/cdc"
