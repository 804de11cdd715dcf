"""Every route that reads a JSON body refuses what would become too large, before it is parsed.

Large bodies that are refused or taken are parsed away from the event loop.
"""

import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from caraway_core.json_texts import strict_json
from caraway_gateway.composition.app import ROUTERS
from caraway_plugins.changes import documents
from caraway_serving import parsing
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

MANIFEST = """
    runtime:
      auth: {api-key: {keys: ["writer:rw"]}}
      http: {max_body_memory: 32MiB, max_body_size: 16MiB}
      scheduler: {state_location: results}
    datasets:
      - from: memory:t
        name: t
        access: read_write
        columns: [{name: id, type: bigint}]
      - from: cdc:orders
        name: orders
        columns: [{name: id, type: bigint}, {name: v, type: text}]
        acceleration: {enabled: true, primary_key: id}
"""


@dataclass(frozen=True, slots=True)
class Door:
    """A route that reads JSON: `around` is a body in which `%b` is any value."""

    path: str
    around: bytes
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)


_MCP = {"accept": "application/json, text/event-stream", "host": "localhost:8090"}
DOORS: Mapping[str, Door] = {
    "sql": Door("/v1/sql", b'{"sql": "SELECT 1", "parameters": %b}'),
    "an unknown field": Door("/v1/sql", b'{"sql": "SELECT 1", "x": %b}'),
    "jobs": Door("/v1/queries", b'{"sql": "SELECT 1", "parameters": %b}'),
    "embeddings": Door("/v1/embeddings", b'{"model": "builtin:minilm", "input": %b}'),
    "chat": Door("/v1/chat/completions", b'{"model": "m", "messages": %b}'),
    "responses": Door("/v1/responses", b'{"model": "m", "input": %b}'),
    "messages": Door("/v1/messages", b'{"model": "m", "max_tokens": 1, "messages": %b}'),
    "nsql": Door("/v1/nsql", b'{"query": "how many", "datasets": %b}'),
    "search": Door("/v1/search", b'{"text": "a", "datasets": %b}'),
    "tools": Door("/v1/tools/list_datasets", b'{"x": %b}'),
    "tool": Door("/v1/tool/list_datasets", b'{"x": %b}'),
    "mcp": Door("/v1/mcp", b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": %b}}',
                headers=_MCP),
    "changes": Door("/v1/datasets/orders/cdc", b"[%b]"),
    "scans": Door("/v1/caraway/namespaces/public/tables/t/plan", b'{"x": %b}'),
    "scan_tasks": Door("/v1/caraway/namespaces/public/tables/t/tasks", b'{"x": %b}'),
    "signing": Door("/v1/caraway/namespaces/public/tables/t/sign", b'{"x": %b}'),
    "package": Door("/v1/packages/generate", b'{"x": %b}'),
    "verdicts": Door("/v1/verdicts", b'{"verdict": "up", "x": %b}'),
    "snapshot": Door(
        "/v1/datasets/orders/acceleration/snapshots/current", b'{"x": %b}'
    ),
    "refresh": Door("/v1/datasets/orders/acceleration/refresh", b'{"x": %b}'),
    "refresh_sql": Door("/v1/datasets/orders/acceleration", b'{"refresh_sql": %b}', "PATCH"),
}  # fmt: skip
HAVE_NO_BODY = {
    ("POST", "/v1/caraway/{rest:path}"),
    ("PUT", "/v1/caraway/{rest:path}"),
    ("POST", "/v1/sql/{query_id}/cancel"),
    ("POST", "/v1/queries/{query_id}/cancel"),
}
PARSE_NOTHING_LARGE = {"mcp", "package", "verdicts"}
_DEEP = {"deep": b'[{"a":' * 100 + b"1" + b"}]" * 100, "endless": b"[" * 20_000}
_MANY = {
    "empty lists": b"[" + b"[]," * 300_000 + b"[]]",
    "numbers": b"[" + b"1," * 550_000 + b"1]",
    "keys": b"{" + b'"a":1,' * 550_000 + b'"b":1}',
}
_LARGE = b'["' + b"x" * (2 * parsing.INLINE_BYTES) + b'"]'


@asynccontextmanager
async def _started(folder: Path) -> AsyncIterator[Running]:
    async with running(folder, MANIFEST) as runtime:
        runtime.api.headers["x-api-key"] = "writer"

        async def is_ready() -> bool:
            got = await runtime.api.get("/v1/datasets/orders/acceleration")
            return bool(got.json()["status"] == "ready")

        await eventually(is_ready, "the dataset takes changes")
        yield runtime


@pytest.fixture
def parsers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The length of each text that a parser was given, and the thread."""
    seen: list[tuple[int, int]] = []

    def spied(parse: Callable[..., Any]) -> Callable[..., Any]:
        def spy(text: Any, *arguments: Any) -> Any:
            seen.append((len(text), threading.get_ident()))
            return parse(text, *arguments)

        return spy

    monkeypatch.setattr(strict_json, "_parsed", spied(strict_json._parsed))
    monkeypatch.setattr(documents, "events", spied(documents.events))
    return seen


async def _sent(runtime: Running, door: Door, value: bytes) -> Any:
    headers = {"content-type": "application/json", **door.headers}
    content = door.around.replace(b"%b", value)
    return await runtime.api.request(door.method, door.path, content=content, headers=headers)


async def test_large_bodies_are_refused_unparsed_or_parsed_away_from_the_event_loop(
    tmp_path: Path, parsers: list[tuple[int, int]]
) -> None:
    async with _started(tmp_path) as runtime:
        wrong = [await _refusals(runtime, name, parsers) for name in DOORS]
        assert [each for door in wrong for each in door] == []
        for name, door in DOORS.items():
            parsers.clear()
            answer = await _sent(runtime, door, _LARGE)
            large = {thread for length, thread in parsers if length > parsing.INLINE_BYTES}
            assert threading.get_ident() not in large, name
            assert large or name in PARSE_NOTHING_LARGE, (name, answer.text[:200])


async def _refusals(runtime: Running, name: str, parsers: list[tuple[int, int]]) -> list[str]:
    """Return what a door does with bodies other than to refuse them unparsed."""
    wrong = []
    # The parser itself refuses change events that are nested too deeply.
    for kind, value in {**({} if name == "changes" else _DEEP), **_MANY}.items():
        parsers.clear()
        answer = await _sent(runtime, DOORS[name], value)
        status = 400 if kind in _DEEP else 413
        says = "nested too deeply" if kind in _DEEP else "send it in smaller parts"
        if (answer.status_code, says in answer.text, parsers) != (status, True, []):
            wrong.append(f"{name}, {kind}: {answer.status_code} {answer.text[:100]} {parsers[:1]}")
    return wrong


def test_every_route_with_a_body_is_a_door() -> None:
    routes = {
        (method, route.path)  # type: ignore[attr-defined] # all of them are routes of FastAPI
        for router in ROUTERS
        for route in router.routes
        for method in route.methods & {"POST", "PUT", "PATCH"}  # type: ignore[attr-defined] # all of them are routes of FastAPI
    }
    known = {(door.method, door.path) for door in DOORS.values()}
    unknown = {
        (method, path)
        for method, path in routes - HAVE_NO_BODY
        if not any(method == have and _matches(path, asked) for have, asked in known)
    }
    assert unknown == set()


def _matches(path: str, asked: str) -> bool:
    parts, given = path.split("/"), asked.split("/")
    return len(parts) == len(given) and all(
        part == each or part.startswith("{") for part, each in zip(parts, given, strict=True)
    )
