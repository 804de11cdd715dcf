"""Hostile JSON bodies of statements and models harm only themselves."""

from collections.abc import Iterator, Mapping

import httpx
import pytest

from tests.hostile import serving
from tests.hostile.serving import Answer, Served
from tests.hostile.watching import watched

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
_MB = 1_000_000
_EMBEDDINGS = b'{"model": "m", "input": %b}'


def _lists(size: int) -> bytes:
    return b"[" + b"[[[]]]," * (size // 7) + b"[]]"


def _statement(value: bytes, name: str = "parameters") -> bytes:
    return b'{"sql": "SELECT 1", "%b": %b}' % (name.encode(), value)


BODIES: Mapping[str, tuple[str, bytes]] = {
    "small lists, 1 MB": ("/v1/sql", _statement(_lists(_MB))),
    "small lists, 21 MB": ("/v1/sql", _statement(_lists(21 * _MB))),
    "small lists, 98 MB": ("/v1/sql", _statement(_lists(98 * _MB))),
    "small objects": ("/v1/sql", _statement(b"[" + b"{}," * (7 * _MB) + b"{}]")),
    "numbers": ("/v1/sql", _statement(b"[" + b"1," * (10 * _MB) + b"1]")),
    "one parameter below the limit": ("/v1/sql", _statement(b"[" + b"1," * 99_000 + b"1]")),
    "an unknown field": ("/v1/sql", _statement(b'"' + b"x" * (30 * _MB) + b'"', "x")),
    "unknown lists": ("/v1/sql", _statement(_lists(30 * _MB), "x")),
    "long keys": ("/v1/sql", _statement(b'{"' + b"k" * (30 * _MB) + b'": 1}')),
    "a job": ("/v1/queries", _statement(_lists(21 * _MB))),
    "texts": ("/v1/embeddings", _EMBEDDINGS % (b"[" + b'"a",' * (5 * _MB) + b'"a"]')),
    "token lists": ("/v1/embeddings", _EMBEDDINGS % (b"[" + b"[1]," * (5 * _MB) + b"[1]]")),
    "a long token list": ("/v1/embeddings", _EMBEDDINGS % (b"[[" + b"1," * (15 * _MB) + b"1]]")),
    "messages": ("/v1/chat/completions", b'{"model": "m", "messages": %b}' % _lists(21 * _MB)),
    "a tool": ("/v1/tools/list_datasets", b'{"x": %b}' % _lists(21 * _MB)),
    "MCP": (
        "/v1/mcp",
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": %b}}' % _lists(21 * _MB),
    ),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving.standalone(tmp_path_factory.mktemp("json")) as made:
        yield made


@pytest.mark.parametrize("name", BODIES)
def test_a_json_body_harms_only_itself(served: Served, name: str) -> None:
    running = served.up()
    url = f"http://{running.addresses['http']}"
    path, body = BODIES[name]
    answers: list[Answer] = []
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }

    def send() -> None:
        try:
            got = httpx.post(url + path, content=body, headers=headers, timeout=serving.WITHIN_S)
            answers.append(Answer(got.status_code, got.text))
        except httpx.HTTPError as exc:
            answers.append(Answer(0, repr(exc)))

    seen = watched([running.process.pid], url, send)
    assert answers[0].problems() + seen.problems() == []
    assert running.process.poll() is None
