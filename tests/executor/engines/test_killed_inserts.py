"""An engine that ends during an INSERT into a folder leaves nothing that is read, or that stays."""

import asyncio
import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import TableSpec
from caraway_executor.engines.engines import Engines
from caraway_plugins.sources.files import LocalFiles
from tests.kit.deadlines import eventually
from tests.kit.engine import snapshot
from tests.kit.engine_pools import be_patient, engines, rows

COUNT = 4_000_000
INSERT = f"INSERT INTO t SELECT value, uuid() FROM range({COUNT})"


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    path = tmp_path / "t"
    path.mkdir()
    first = pa.table({"id": pa.array([1], pa.int64()), "v": ["a"]})
    parquet.write_table(first, path / "a.parquet")
    request = SourceRequest(
        TableName("t"), "file", f"{path}/", {}, (), "read_write", tmp_path, tmp_path
    )
    return LocalFiles().resolve(request)


@pytest.mark.parametrize("is_writing", [False, True], ids=["computing", "writing"])
async def test_a_killed_insert_is_not_there(
    tmp_path: Path, spec: TableSpec, is_writing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_patient(monkeypatch)

    async with engines(snapshot({"t": spec})) as made:
        writing = asyncio.create_task(rows(made, INSERT, writable=frozenset({TableName("t")})))
        pid = await eventually(partial(_computing, made), "rows wait in a file")
        if is_writing:
            await eventually(partial(_has_begun, tmp_path / "t"), "a file is begun")
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ExecutionError, match="look before you run it again"):
            await writing
        assert await rows(made, "SELECT count(*) AS n FROM t") == [{"n": 1}]
        left = {each.suffix for each in (tmp_path / "t").iterdir()}
        assert (left != {".parquet"}) == is_writing
        # A day later the next statement removes it.
        for each in (tmp_path / "t").glob("*#*"):
            os.utime(each, (0, 0))
        sql = "INSERT INTO t VALUES (2, 'b')"
        assert await rows(made, sql, writable=frozenset({TableName("t")})) == [{"count": 1}]
        assert {each.suffix for each in (tmp_path / "t").iterdir()} == {".parquet"}


async def _computing(made: Engines) -> int:
    """Return the process of the engine that has rows in a file; 0: none has."""
    for each in made.processes:
        for opened in Path(f"/proc/{each.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if opened.readlink().name == "rows.arrow":
                    return each.pid
    return 0


async def _has_begun(folder: Path) -> bool:
    # A file that is not whole yet has another name.
    return len(list(folder.iterdir())) > 1
