"""The JDBC driver of Flight SQL against a real runtime; `make test-clients` fetches it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit.processes import child

pytestmark = pytest.mark.full
HERE = Path(__file__).parent / "clients" / "java"
JARS = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients")) / "java"
MANIFEST = """
version: v1
kind: Caraway
name: jdbc
runtime: {auth: {api-key: {keys: ['writer:rw']}}}
datasets:
  - from: memory:items
    name: items
    params: {data: '[{"id": 1, "title": "one"}, {"id": 2, "title": "it''s"}]'}
  - from: memory:kept
    name: kept
    access: read_write
    columns: [{name: id, type: bigint}]
"""
EXPECTED = {
    "product": "Caraway",
    "query": "[[1, one], [2, it's]]",
    "parameters": "[[2, it's]]",
    "types": "[[true, 1.5, 2024-02-29, 2024-02-29 12:30:00.0, 2.50, null]]",
    "count": "[[100000]]",
    "insert": "2",
    "kept": "[[7], [8]]",
    "schemas": "[information_schema, public, runtime]",
    "tables": "[items, kept]",
    "columns": "[id, title]",
}


def test_statements_parameters_and_metadata(tmp_path: Path) -> None:
    if shutil.which("java") is None or not list(JARS.glob("*.jar")):
        pytest.skip("NOT TESTED: no java, or no driver; run `make test-clients` where mvn is")
    (tmp_path / "caraway.yaml").write_text(MANIFEST)
    with child(tmp_path, tmp_path) as runtime:
        url = f"jdbc:arrow-flight-sql://{runtime.addresses['flight']}/"
        ran = subprocess.run(
            ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", f"{JARS.resolve()}/*",
             str(HERE / "Jdbc.java"), f"{url}?useEncryption=false&token=writer"],
            capture_output=True, text=True, timeout=200,
        )  # fmt: skip
    found = dict(line.split(": ", 1) for line in ran.stdout.splitlines() if ": " in line)
    assert found, ran.stderr
    assert "column 'nothing' not found" in found.pop("mistake")
    assert found == EXPECTED
