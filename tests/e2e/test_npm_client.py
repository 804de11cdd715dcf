"""The npm package @spiceai/spice against a real runtime; `make test-npm` installs it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kit.certificates import make_certificate
from tests.kit.processes import child

pytestmark = pytest.mark.full
PACKAGE = Path(os.environ.get("CARAWAY_NPM", ".venv/npm")) / "node_modules/@spiceai/spice"
SCRIPT = Path(__file__).parent / "npm_client.js"
KEYS = "runtime: {auth: {api-key: {keys: ['writer:rw']}}}\n"
SECURE = (
    "runtime:\n  auth: {api-key: {keys: ['writer:rw']}}\n"
    "  tls: {enabled: true, certificate_file: tls.crt, key_file: tls.key}\n"
)
MANIFEST = """
version: v1
kind: Caraway
name: npm
datasets:
  - from: memory:items
    name: items
    params: {data: '[{"id": 1, "title": "one"}, {"id": 2, "title": "it''s"}]'}
    columns: [{name: title, full_text_search: {enabled: true, row_id: id}}]
  - from: memory:kept
    name: kept
    params: {data: '[{"id": 1}]'}
    acceleration: {enabled: true}
"""
EXPECTED: dict[str, Any] = {
    "sql": [{"id": 1, "title": "one"}, {"id": 2, "title": "it's"}],
    "types": [{"b": True, "d": 1.5, "s": "é", "i": 7, "n": None}],
    "parameters": [{"id": 2}],
    "named": [{"id": 1}],
    "typed": [{"n": 3, "s": "ab"}],
    "empty": [],
    "streamed": 100_000,
    "sqlJson": {"row_count": 2, "data": [{"id": 1}, {"id": 2}], "types": ["Int64"]},
    "query": [{"value": number} for number in range(1, 6)],
    "listQueries": 1,
    "listActiveQueries": 0,
    "search": {
        "count": 1,
        "key": {"id": 2},
        "dataset": "items",
        "matches": {"title": ["it's"]},
        "isScored": True,
        "duration": "number",
    },
    "keywords": [1],
    "refresh": "string",
    "isSpiceHealthy": True,
    "isSpiceReady": True,
}
ERRORS = {
    "mistake": "column 'nothing' not found",
    "failing": "EXECUTION_FAILED: division by zero",
    "cancelActiveQuery": "No active query",
}


def run(tmp_path: Path, runtime: str, transport: str, key: str = "") -> dict[str, dict[str, Any]]:
    if not PACKAGE.exists():
        pytest.skip("the npm package is not installed; run `make test-npm`")
    (tmp_path / "caraway.yaml").write_text(MANIFEST + runtime)
    is_secure = runtime == SECURE
    with child(tmp_path, tmp_path, secure=is_secure) as server:
        scheme = "https" if is_secure else "http"
        ran = subprocess.run(
            ["node", str(SCRIPT), str(PACKAGE.resolve()),
             f"{scheme}://{server.addresses['http']}", server.addresses["flight"], key, transport,
             str(tmp_path / "tls.crt") if is_secure else ""],
            capture_output=True, text=True, timeout=120,
            env={**os.environ, "NODE_EXTRA_CA_CERTS": str(tmp_path / "tls.crt")},
        )  # fmt: skip
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert lines, ran.stderr
    return {line["name"]: line for line in lines}


def check(found: dict[str, dict[str, Any]]) -> None:
    for name, said in ERRORS.items():
        assert said in found.pop(name)["error"], name
    assert {name: line.get("result", line) for name, line in found.items()} == EXPECTED


@pytest.mark.parametrize("transport", ["flight", "http", "both"])
def test_every_operation_works_without_keys(tmp_path: Path, transport: str) -> None:
    check(run(tmp_path, "", transport))


@pytest.mark.parametrize("transport", ["flight", "http", "both"])
def test_every_operation_works_with_a_key_over_tls(tmp_path: Path, transport: str) -> None:
    make_certificate(tmp_path / "tls.crt", tmp_path / "tls.key", is_authority=True)
    check(run(tmp_path, SECURE, transport, "writer"))


def test_key_over_plain_flight_is_not_sent_and_http_takes_over(tmp_path: Path) -> None:
    found = run(tmp_path, KEYS, "both", "writer")
    assert found["sql"]["result"] == EXPECTED["sql"]
    assert found["parameters"]["result"] == EXPECTED["parameters"]
