"""The peer's Rust client against a real runtime; `make test-clients` builds it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import child

pytestmark = pytest.mark.full
PROGRAM = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients")) / "rust/debug/client"
MANIFEST = """
version: v1
kind: Caraway
name: rust
{runtime}
datasets:
  - from: memory:items
    name: items
    params: {{data: '[{{"id": 1, "title": "one"}}, {{"id": 2, "title": "it''s"}}]'}}
    columns: [{{name: title, full_text_search: {{enabled: true, row_id: [id]}}}}]
  - from: file:kept.csv
    name: kept
    acceleration: {{enabled: true}}
"""
KEYS = "runtime: {auth: {api-key: {keys: ['writer:rw']}}, scheduler: {state_location: results}}"
EXPECTED: dict[str, Any] = {
    "sql": [[1, "one"], [2, "it's"]],
    "parameters": [["it's"]],
    "empty": [],
    "streamed": 100_000,
    "query": {"total": 5, "rows": [[1], [2], [3], [4], [5]]},
    "queries": 1,
    "cancelled": True,
    "active": 0,
    "search": {"dataset": "items", "key": {"id": 2}, "matches": {"title": ["it's"]}},
    "refresh": True,
    "states": {"flight": True, "ready": True},
}


@pytest.mark.parametrize("key", ["", "writer"])
def test_every_operation_works(tmp_path: Path, key: str) -> None:
    if not PROGRAM.exists():
        pytest.skip("NOT TESTED: no client; run `make test-clients` where cargo is")
    runtime = KEYS if key else "runtime: {scheduler: {state_location: results}}"
    (tmp_path / "kept.csv").write_text("id\n7\n")
    (tmp_path / "caraway.yaml").write_text(MANIFEST.format(runtime=runtime))
    with child(tmp_path, tmp_path) as server:
        http, flight = (server.addresses[name] for name in ("http", "flight"))
        ran = subprocess.run(
            [PROGRAM.resolve(), f"http://{http}", f"http://{flight}", key],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    found = {line["name"]: line for line in map(json.loads, ran.stdout.splitlines())}
    assert found, ran.stderr
    assert "column 'nothing' not found" in found.pop("mistake")["error"]
    assert {name: line.get("result", line) for name, line in found.items()} == EXPECTED
