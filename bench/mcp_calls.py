"""Time of `tools/call` of a small statement by MCP, against `POST /v1/sql` of the same one."""

import json
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from bench import servers
from bench.report import Figure

_CALLS = 400
_ROUNDS = 5
_MOST_MORE_MS = 5.0
_KEY = "bench-key"
_MANIFEST = f"""version: v1
kind: Caraway
name: mcp
runtime:
  auth: {{api-key: {{keys: ["{_KEY}:rw"]}}}}
  caching: {{sql_results: {{enabled: false}}}}
datasets: []
"""
_SQL = "SELECT 1 AS one, 'two' AS two"
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
_CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "sql", "arguments": {"query": _SQL}},
}


def measure() -> list[Figure]:
    """Time both in turn over one connection, and compare the medians."""
    with TemporaryDirectory() as folder:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text(_MANIFEST)
        with servers.caraway(manifest) as (url, _), _client(url) as client:
            session = _session(client)
            rounds = [(_mcp(client, session), _sql(client)) for _ in range(_ROUNDS)]
    mcp_ms, sql_ms = (statistics.median(column) * 1000 for column in zip(*rounds, strict=True))
    more_ms = mcp_ms - sql_ms
    return [
        Figure(
            "MCP `tools/call` of a small statement, in a session; `POST /v1/sql`",
            f"{mcp_ms:.2f} ms",
            f"{sql_ms:.2f} ms",
            mcp_ms / sql_ms,
            f"at most {_MOST_MORE_MS:g} ms more",
            more_ms <= _MOST_MORE_MS,
        )
    ]


def _client(url: str) -> httpx.Client:
    accept = "application/json, text/event-stream"
    return httpx.Client(base_url=url, headers={"x-api-key": _KEY, "accept": accept}, timeout=60)


def _session(client: httpx.Client) -> dict[str, str]:
    answer = client.post("/v1/mcp", json=_INITIALIZE)
    answer.raise_for_status()
    headers = {"mcp-session-id": answer.headers["mcp-session-id"]}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    client.post("/v1/mcp", json=ready, headers=headers).raise_for_status()
    return headers


def _mcp(client: httpx.Client, session: dict[str, str]) -> float:
    def call() -> Any:
        answer = client.post("/v1/mcp", json=_CALL, headers=session)
        return json.loads(answer.json()["result"]["content"][0]["text"])

    return _median_s(call)


def _sql(client: httpx.Client) -> float:
    headers = {"content-type": "text/plain", "accept": "application/json"}
    return _median_s(lambda: client.post("/v1/sql", content=_SQL, headers=headers).json())


def _median_s(call: Any) -> float:
    times = []
    for _ in range(_CALLS):
        began = time.perf_counter()
        rows = call()
        times.append(time.perf_counter() - began)
        assert rows == [{"one": 1, "two": "two"}], rows
    return statistics.median(times)
