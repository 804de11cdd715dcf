"""Clients read tables in S3 without credentials; `make test-clients` installs them."""

import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.deadlines import until
from tests.kit.processes import Child, child
from tests.kit.s3 import KEY, REGION, SECRET, S3Server, s3_server

__all__ = ["s3_server"]
pytestmark = pytest.mark.full
PYTHON = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients")) / "iceberg/bin/python"
PROGRAM = Path(__file__).parent / "iceberg_access_client.py"
BUCKET = "lake-clients"
# Threads of PyIceberg 0.12 share a client of S3, and each takes the signer of the others away.
ALONE = {"PYICEBERG_MAX_WORKERS": "1", "AWS_EC2_METADATA_DISABLED": "true"}


def manifest(server: S3Server) -> str:
    return f"""
version: v1
kind: Caraway
name: access
runtime:
  auth: {{api-key: {{keys: ['reader:ro']}}}}
  iceberg:
    access_delegation: [remote-signing, vended-credentials]
    sts_role_arn: arn:aws:iam::123456789012:role/readers
    sts_endpoint: {server.endpoint}
    location: s3://{BUCKET}/published
    params: &s3
      s3_region: {REGION}
      s3_endpoint: {server.endpoint}
      s3_auth: key
      s3_key: {KEY}
      s3_secret: {SECRET}
      allow_http: 'true'
datasets:
  - {{from: 's3://{BUCKET}/trips/', name: trips, params: *s3}}
  - {{from: 'file:people.csv', name: people}}
"""


@pytest.fixture
def served(tmp_path: Path, s3_server: S3Server) -> Path:
    if not PYTHON.exists():
        pytest.skip("NOT TESTED: no PyIceberg and DuckDB; run `make test-clients`")
    s3_server.bucket(BUCKET)
    for name, values in (("one", [1, 2]), ("two file", [3])):
        content = io.BytesIO()
        pq.write_table(pa.table({"a": values}), content)
        s3_server.put(BUCKET, f"trips/{name}.parquet", content.getvalue())
    (tmp_path / "people.csv").write_text("id\n7\n")
    (tmp_path / "caraway.yaml").write_text(manifest(s3_server))
    return tmp_path


def read(server: Child, mode: str) -> dict[str, Any]:
    ran = subprocess.run(
        [PYTHON.absolute(), PROGRAM, f"http://{server.addresses['http']}", "reader", mode],
        capture_output=True, text=True, timeout=100, env={**os.environ, **ALONE},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_clients_read_by_signatures_and_by_temporary_credentials(served: Path) -> None:
    with child(served, served) as server:
        path = "/v1/caraway/namespaces/public/tables/trips"
        headers = {"x-api-key": "reader"}
        until(lambda: server.api.get(path, headers=headers).status_code == 200, "it is loaded")
        found = read(server, "remote-signing")
        vended = read(server, "vended-credentials")
    assert found["io"] == "FsspecFileIO"
    assert sorted(row["a"] for row in found["trips"]) == [2, 3]
    assert found["people"] == [{"id": 7}]
    assert vended["duckdb"] == [2, 3]
    assert vended["io"] == "PyArrowFileIO"
    assert sorted(row["a"] for row in vended["trips"]) == [2, 3]
