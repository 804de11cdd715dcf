"""An engine that ends between a commit to a Delta log and its answer is no loss of the answer."""

import os
import signal
import uuid
from dataclasses import dataclass
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.process import write_marks
from caraway_core.tables import MemoryTable, TableSpec
from caraway_executor.engines.engines import Engines
from caraway_plugins.sources.delta import DeltaSource
from tests.kit.delta_tables import request
from tests.kit.engine import snapshot
from tests.kit.engine_pools import be_patient, engines, rows
from tests.kit.s3 import KEY, REGION, SECRET, S3Server, s3_server

__all__ = ["s3_server"]
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"]})
SOURCE = pa.table({"k": [2, 9], "w": ["two", "nine"]})
WRITES = {
    "INSERT INTO t VALUES (4, 'd'), (5, 'e')": 2,
    "UPDATE t SET v = 'x' WHERE id > 1": 2,
    "DELETE FROM t WHERE id = 3": 1,
    "DELETE FROM t": 3,
    "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = s.w "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.w)": 2,
}
_NEXT = "/_delta_log/00000000000000000001.json"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)
    monkeypatch.setattr(write_marks, "_DELAYS", Delays(0.0, 0.0))


@dataclass
class StoredDelta:
    """A Delta table in an object store, whose entries of the log end engines."""

    server: S3Server
    table: DeltaTable
    spec: TableSpec
    ended: int = 0

    @property
    def tables(self) -> dict[str, TableSpec]:
        return {"t": self.spec, "s": MemoryTable(SOURCE.schema, SOURCE)}

    def end(self, made: Engines, method: str, path: str) -> bool:
        """End the engine that writes the next entry of the log; return whether this is one."""
        if self.ended or method != "PUT" or not path.endswith(_NEXT):
            return False
        (writing,) = (each for each in made.processes if each.works)
        os.kill(writing.pid, signal.SIGKILL)
        self.ended += 1
        return True

    def version(self) -> int:
        self.table.update_incremental()
        return int(self.table.version())


@pytest.fixture
def stored(s3_server: S3Server, tmp_path: Path) -> StoredDelta:
    bucket = f"b{uuid.uuid4()}"
    s3_server.bucket(bucket)
    place = f"s3://{bucket}/t"
    options = {
        "aws_endpoint": s3_server.endpoint, "aws_region": REGION, "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET, "allow_http": "true",
    }  # fmt: skip
    deltalake.write_deltalake(place, ROWS, storage_options=options)
    spec = DeltaSource().resolve(request(tmp_path, place, **s3_server.params()))
    return StoredDelta(s3_server, DeltaTable(place, storage_options=options), spec)


async def write(made: Engines, sql: str) -> list[dict[str, object]]:
    return await rows(made, sql, writable=frozenset({TableName("t")}))


@pytest.mark.parametrize("sql", WRITES)
async def test_an_entry_of_the_log_that_is_there_is_the_answer(
    stored: StoredDelta, sql: str
) -> None:
    async with engines(snapshot(stored.tables)) as made:
        with stored.server.telling(lambda *given: stored.end(made, *given)):
            assert await write(made, sql) == [{"count": WRITES[sql]}]
        assert (stored.ended, sum(made.restarts.values())) == (1, 1)
    assert stored.version() == 1


@pytest.mark.parametrize("sql", WRITES)
async def test_an_entry_of_the_log_that_is_not_there_wrote_nothing(
    stored: StoredDelta, sql: str
) -> None:
    async with engines(snapshot(stored.tables)) as made:

        def refuse(method: str, path: str, _query: str) -> int | None:
            return 503 if stored.end(made, method, path) else None

        with (
            stored.server.refusing(refuse),
            pytest.raises(ExecutionError, match="no row was written so far"),
        ):
            await write(made, sql)
        assert stored.ended == 1
    assert stored.version() == 0


async def test_a_store_that_is_away_leaves_it_open(stored: StoredDelta) -> None:
    async with engines(snapshot(stored.tables)) as made:
        with (
            stored.server.telling(lambda *given: stored.end(made, *given)),
            stored.server.refusing(lambda *_given: 403 if stored.ended else None),
            pytest.raises(ExecutionError, match="look before you run it again"),
        ):
            await write(made, next(iter(WRITES)))
        assert stored.ended == 1
    assert stored.version() == 1
