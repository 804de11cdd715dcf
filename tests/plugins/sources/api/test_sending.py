"""Secrets, redirects, refusals and waits of the requests to an API."""

from pathlib import Path

import pytest

from caraway_core.errors import QueryError
from caraway_core.tables import scanners
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.api import sending
from tests.kit.api_server import ApiAnswer, ApiRequest, ApiServer
from tests.plugins.sources import reading
from tests.plugins.sources.api.datasets import PEOPLE, cut, dataset, refusal


def test_headers_and_tokens_are_sent_and_never_shown(server: ApiServer, tmp_path: Path) -> None:
    server.say("/x", [{"a": 1}])
    params = {"http_headers": "X-Key: hidden", "http_auth_token": "hidden-too"}
    of = dataset(server, "/x?key=hidden", tmp_path, **params)
    assert of.rows() == [{"a": 1}]
    sent = server.requests[-1]
    assert (sent.headers["x-key"], sent.headers["authorization"]) == ("hidden", "Bearer hidden-too")
    assert "hidden" not in repr(of.resolve())
    login = {"http_username": "u", "http_password": "hidden"}
    dataset(server, "/x", tmp_path, **login).resolve()
    assert server.requests[-1].headers["authorization"] == "Basic dTpoaWRkZW4="
    server.answers["/x"] = lambda _: ApiAnswer({"said": "hidden"}, 401)
    found = refusal(of)
    assert found.type == "auth" and "hidden" not in found.message


def test_another_host_gets_no_secrets(server: ApiServer, other: ApiServer, tmp_path: Path) -> None:
    other.say("/p", PEOPLE)
    server.answers["/p"] = lambda _: ApiAnswer(b"", 302, {"location": f"{other.url}/p"})
    server.say("/q", PEOPLE, link=f'<{other.url}/p>; rel="next"')
    params = {"http_headers": "X-Key: hidden", "http_auth_token": "hidden"}
    assert dataset(server, "/p", tmp_path, **params).rows() == PEOPLE
    assert len(dataset(server, "/q", tmp_path, **params).rows()) == 6
    assert other.requests and "hidden" not in repr(other.requests)
    assert "x-key" in server.requests[-1].headers


def test_the_same_host_gets_them_after_a_redirect(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/p"] = lambda _: ApiAnswer(b"", 308, {"location": "/q"})
    server.say("/q", PEOPLE)
    assert dataset(server, "/p", tmp_path, http_auth_token="t").rows() == PEOPLE
    assert server.requests[-1].headers["authorization"] == "Bearer t"


def test_redirects_that_do_not_end_and_those_to_elsewhere_are_refused(
    server: ApiServer, tmp_path: Path
) -> None:
    server.answers["/p"] = lambda _: ApiAnswer(b"", 302, {"location": "/p"})
    assert "redirects too often" in refusal(dataset(server, "/p", tmp_path)).message
    for place in ("file:///etc/passwd", "http://u:p@127.0.0.1/", "gopher://x"):
        server.answers["/q"] = lambda _, to=place: ApiAnswer(b"", 302, {"location": to})  # type: ignore[misc] # each has its own
        assert "not one of the web" in refusal(dataset(server, "/q", tmp_path)).message


def test_a_busy_server_is_asked_again_after_the_time_it_names(
    server: ApiServer, tmp_path: Path
) -> None:
    for status, headers in ((429, {"retry-after": "0"}), (503, {"retry-after": "0"})):
        waiting = [ApiAnswer({}, status, headers)] * 3

        def answer(_: ApiRequest, waiting: list[ApiAnswer] = waiting) -> ApiAnswer:
            return waiting.pop() if waiting else ApiAnswer(PEOPLE)

        server.answers["/p"] = answer
        server.requests.clear()
        dataset(server, "/p", tmp_path).resolve()
        assert len(server.requests) == 4


def test_repetitions_and_waits_are_bounded(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/p"] = lambda _: ApiAnswer({}, 429, {"retry-after": "0"})
    found = refusal(dataset(server, "/p", tmp_path, max_retries="2"))
    assert found.type == "unavailable" and len(server.requests) == 3
    server.requests.clear()
    server.answers["/p"] = lambda _: ApiAnswer({}, 503, {"retry-after": "3600"})
    found = refusal(dataset(server, "/p", tmp_path))
    assert "asks to wait for 3600 s" in found.message and len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "type_"),
    [(400, "invalid"), (403, "auth"), (404, "not_found"), (500, "unavailable")],
)
def test_refusals_are_told_apart(
    status: int, type_: str, server: ApiServer, tmp_path: Path
) -> None:
    server.answers["/p"] = lambda _: ApiAnswer({}, status)
    assert refusal(dataset(server, "/p", tmp_path)).type == type_


def test_a_server_that_is_away_is_unavailable(tmp_path: Path) -> None:
    of = reading.Dataset("http", "127.0.0.1:1/x?key=hidden", tmp_path, {"max_retries": "0"})
    found = refusal(of)
    assert found.type == "unavailable" and "hidden" not in found.message


@pytest.mark.parametrize(
    "body", [b"<html>", b"[1", b'{"a": 1, "a": 2}', b"[NaN]", b"\xff", b"[" * 100 + b"]" * 100]
)
def test_what_is_no_json_is_refused(body: bytes, server: ApiServer, tmp_path: Path) -> None:
    server.say("/x", body)
    found = refusal(dataset(server, "/x", tmp_path))
    assert found.type == "invalid" and "JSON" in found.message


def test_large_pages_are_refused(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_MOST_BYTES", 100)
    server.say("/x", [{"a": "x" * 200}])
    assert refusal(dataset(server, "/x", tmp_path)).type == "unsupported"


def test_a_statement_that_ends_does_not_wait(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/p"] = cut(PEOPLE)
    of = dataset(server, "/p", tmp_path, pagination_offset_param="offset")
    spec = of.resolve()
    rows = scanners.of(spec).scan(spec, RowRequest(["id"]))
    batches = iter(rows)
    next(batches)
    server.requests.clear()
    rows.close()
    with pytest.raises(QueryError, match="is not read any more"):
        next(batches)
    assert not server.requests


def test_a_statement_that_ends_while_the_server_is_busy_does_not_wait(
    server: ApiServer, tmp_path: Path
) -> None:
    server.answers["/p"] = cut(PEOPLE)
    spec = dataset(server, "/p", tmp_path, pagination_offset_param="offset").resolve()
    rows = scanners.of(spec).scan(spec, RowRequest(["id"]))

    def answer(_: ApiRequest) -> ApiAnswer:
        rows.close()
        return ApiAnswer({}, 429, {"retry-after": "100"})

    server.answers["/p"] = answer
    with pytest.raises(QueryError, match="is busy"):
        next(iter(rows))
