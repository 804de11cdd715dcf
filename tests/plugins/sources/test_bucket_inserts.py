"""An INSERT into a folder of a bucket is one object with all of its rows, or nothing."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_engine.sessions.sessions import Session
from caraway_plugins.sources.files import ObjectFiles
from tests.conformance.written_databases import write
from tests.kit.engine import rows, session
from tests.kit.s3 import S3Server

FIRST = pa.table({"id": pa.array([1], pa.int64()), "v": ["a"]})
MANY = 1_000_000
BAD = f"SELECT value, CAST(1 / (value - {MANY - 10}) AS VARCHAR) FROM range({MANY})"


def in_bucket(server: S3Server, tmp_path: Path) -> tuple[Session, Callable[[], set[str]]]:
    bucket = f"b{uuid.uuid4().hex[:8]}"
    server.bucket(bucket)
    file = tmp_path / "a.parquet"
    parquet.write_table(FIRST, file)
    server.put(bucket, "d/a.parquet", file.read_bytes())
    request = SourceRequest(
        TableName("t"), "s3", f"{bucket}/d/", server.params(), (), "read_write", tmp_path, tmp_path
    )
    return session({"t": ObjectFiles().resolve(request)}), lambda: server.keys(bucket)


async def test_a_statement_that_fails_stores_no_object(s3_server: S3Server, tmp_path: Path) -> None:
    of, keys = in_bucket(s3_server, tmp_path)
    with pytest.raises(CarawayError, match="division by zero"):
        await write(of, f"INSERT INTO t {BAD}")
    assert keys() == {"d/a.parquet"}
    assert await write(of, "INSERT INTO t VALUES (2, 'b')") == 1
    assert len(keys()) == 2
    assert await rows(of, "SELECT count(*) AS n FROM t") == [{"n": 2}]


@pytest.mark.parametrize("refused", ["uploadId", "partNumber=2"])
async def test_an_object_store_that_fails_has_no_object(
    s3_server: S3Server, tmp_path: Path, refused: str
) -> None:
    of, keys = in_bucket(s3_server, tmp_path)
    large = f"INSERT INTO t SELECT value, uuid() FROM range({MANY})"

    def refuse(_method: str, _path: str, query: str) -> int | None:
        return 403 if refused in query else None

    with s3_server.refusing(refuse), pytest.raises(CarawayError):
        await write(of, large)
    assert keys() == {"d/a.parquet"}
    assert await rows(of, "SELECT count(*) AS n FROM t") == [{"n": 1}]
