"""A lake in a bucket whose requests the catalog signs."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.s3 import KEY, REGION, S3Server

BASE = "/v1/caraway/namespaces/public/tables"
BUCKET = "lake-signed"


def manifest(server: S3Server, mode: str) -> str:
    return f"""
    runtime:
      auth: {{api-key: {{keys: ['ada:ro', 'bob:ro']}}}}
      iceberg:
        {mode}
        location: s3://{BUCKET}/published
        params: &s3
          s3_region: {REGION}
          s3_endpoint: {server.endpoint}
          s3_auth: key
          s3_key: {KEY}
          s3_secret: ${{secrets:S3_SECRET}}
          allow_http: true
    datasets:
      - {{from: 's3://{BUCKET}/t/', name: t, params: *s3}}
      - {{from: 's3://{BUCKET}/other/', name: other, params: *s3}}
      - {{from: 'file:rows.csv', name: people}}
    """


def parquet(*values: int) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table({"a": list(values)}), content)
    return content.getvalue()


def by(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def lake(s3_server: S3Server, tmp_path: Path) -> S3Server:
    if BUCKET not in {each["Name"] for each in s3_server.client.list_buckets()["Buckets"]}:
        s3_server.bucket(BUCKET)
    s3_server.put(BUCKET, "t/year=20%24/one file.parquet", parquet(7))
    s3_server.put(BUCKET, "other/one.parquet", parquet(8))
    s3_server.put(BUCKET, "t/secret.txt", b"not of the table")
    (tmp_path / "rows.csv").write_text("id\n1\n")
    return s3_server
