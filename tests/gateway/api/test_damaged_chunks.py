"""Damaged chunks of accelerated datasets in their store, in one runtime."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_acceleration.passthrough.through import SourceDispatch
from caraway_core.errors import DatasetDamagedError
from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement
from tests.gateway.api import sending_changes as changes
from tests.gateway.api.accelerating import at_version, manifest, refresh, standing, write
from tests.gateway.api.snapshotting import made, place
from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.stream_double import StreamDouble

FILED = manifest("engine: file", "mode: file")


def flip_a_bit(chunk: Path) -> None:
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)


def truncate(chunk: Path) -> None:
    chunk.write_bytes(chunk.read_bytes()[:-9])


Damage = Callable[[Path], None]
DAMAGES = pytest.mark.parametrize("damage", [flip_a_bit, truncate, Path.unlink])


def damage_all(folder: Path, damage: Damage) -> None:
    chunks = list((folder / "data-dir" / "results" / "datasets").rglob("*.arrow"))
    assert chunks
    for chunk in chunks:
        damage(chunk)


async def status(runtime: Running) -> str:
    return str((await standing(runtime))["status"])


async def refused(runtime: Running, folder: Path) -> None:
    """Wait until a query is refused, once the stored version exists."""

    async def look() -> bool:
        found = await runtime.sql("SELECT count(*) AS n FROM orders")
        assert found.status_code == 503, found.text
        assert "retry-after" in found.headers
        assert str(folder) not in found.text and ".arrow" not in found.text
        return "damaged or missing" in found.text

    await eventually(look, "a query is refused")


@DAMAGES
async def test_a_damaged_dataset_is_loaded_again_from_its_source(
    tmp_path: Path, damage: Damage
) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, FILED) as runtime:
        await at_version(runtime, 1)
    damage_all(tmp_path, damage)
    async with running(tmp_path, FILED) as runtime:
        await refused(runtime, tmp_path)

        async def look() -> bool:
            answer = await runtime.sql("SELECT count(*) AS n FROM orders")
            is_answered = answer.status_code == 200 and answer.json() == [{"n": 10}]
            return is_answered and await status(runtime) == "ready"

        await eventually(look, "the dataset is loaded again")


async def test_a_damaged_dataset_of_changes_names_the_remedy(tmp_path: Path) -> None:
    async with running(tmp_path, changes.KEYED) as runtime:
        await changes.ready(runtime)
        await changes.send(runtime, changes.event("c", 1, "a"))
    damage_all(tmp_path, flip_a_bit)
    async with running(tmp_path, changes.KEYED) as runtime:
        await refused(runtime, tmp_path)

        async def look() -> bool:
            # Before that, it reports that copies are being searched.
            return "from a backup" in ((await standing(runtime))["error"] or "")

        await eventually(look, "its status says so")
        assert await status(runtime) == "error"
        listed = await runtime.api.get("/v1/datasets?status=true")
        assert "from a backup" in listed.text and str(tmp_path) not in listed.text


def contents(folder: Path) -> dict[Path, bytes]:
    chunks = (folder / "data-dir" / "results" / "datasets").rglob("*.arrow")
    return {chunk: chunk.read_bytes() for chunk in chunks}


async def answered(runtime: Running, rows: int, number: int) -> None:
    """Wait until a query is answered from the version with this number."""

    async def look() -> bool:
        answer = await runtime.sql("SELECT count(*) AS n, count(DISTINCT id) AS d FROM orders")
        is_answered = answer.status_code == 200 and answer.json() == [{"n": rows, "d": rows}]
        return is_answered and await status(runtime) == "ready"

    await eventually(look, "the dataset is repaired")
    assert (await standing(runtime))["version"]["number"] == number


@DAMAGES
async def test_damaged_chunks_are_stored_again_by_the_executor_with_the_replica(
    tmp_path: Path, damage: Damage
) -> None:
    write(tmp_path, 1000)
    text = manifest("replicas: 2", "partition_by: ['bucket(4, id)']")
    async with clustered(tmp_path, text) as cluster:
        runtime = cluster.runtime
        await at_version(runtime, 1)
        # Loaded when both are present, so each has all rows in memory.
        assert await cluster.membership.wait_ready(2, 60)
        await refresh(runtime)
        await at_version(runtime, 2)
        whole = contents(tmp_path)
        damage_all(tmp_path, damage)
        (tmp_path / "orders.parquet").unlink()
        # After its restart it has nothing in memory, and reads its share from the store.
        await cluster.fleet.lose(ExecutorId("e2"))
        cluster.membership.lost(ExecutorId("e2"), "it is gone")
        cluster.fleet.start(ExecutorId("e2"))
        assert await cluster.membership.wait_ready(2, 60)
        await answered(runtime, 1000, 2)
        found = [path for path, rows in contents(tmp_path).items() if whole.get(path) == rows]
        assert len(found) == 4


@DAMAGES
async def test_a_damaged_dataset_is_loaded_from_a_snapshot_of_the_same_rows(
    tmp_path: Path, damage: Damage
) -> None:
    write(tmp_path, 1000)
    text = manifest("engine: file", "mode: file", "snapshots: enabled") + place()
    async with running(tmp_path, text) as runtime:
        await at_version(runtime, 1)
        await made(tmp_path, 1)
    damage_all(tmp_path, damage)
    (tmp_path / "orders.parquet").unlink()
    async with running(tmp_path, text) as runtime:
        await answered(runtime, 1000, 2)


async def test_a_snapshot_of_older_rows_is_not_used(tmp_path: Path) -> None:
    write(tmp_path, 1000)
    text = manifest("engine: file", "mode: file", "snapshots: enabled") + place()
    async with running(tmp_path, text) as runtime:
        await at_version(runtime, 1)
        await made(tmp_path, 1)
    text = manifest("engine: file", "mode: file", "snapshots: bootstrap_only") + place()
    async with running(tmp_path, text) as runtime:
        write(tmp_path, 1200)
        await refresh(runtime)
        await at_version(runtime, 2)
    damage_all(tmp_path, flip_a_bit)
    async with running(tmp_path, text) as runtime:
        await refused(runtime, tmp_path)
        await answered(runtime, 1200, 3)


async def test_a_dataset_of_changes_is_repaired_from_a_snapshot_of_the_same_rows(
    tmp_path: Path,
) -> None:
    keys = ("snapshots: enabled", "snapshots_trigger: stream_batches")
    text = changes.manifest("primary_key: id", *keys, "snapshots_trigger_threshold: 1") + place()
    async with running(tmp_path, text) as runtime:
        await changes.ready(runtime)
        await made(tmp_path, 1)
        await changes.send(runtime, changes.event("c", 1, "a"), changes.event("c", 2, "b"))
        await made(tmp_path, 2)
    damage_all(tmp_path, flip_a_bit)
    async with running(tmp_path, text) as runtime:
        await refused(runtime, tmp_path)

        async def look() -> bool:
            return await status(runtime) == "ready"

        await eventually(look, "it is repaired")
        assert await changes.rows(runtime) == [(1, "a"), (2, "b")]
        await changes.send(runtime, changes.event("u", 1, "c"))
        assert await changes.rows(runtime) == [(1, "c"), (2, "b")]


async def test_damage_that_is_found_after_the_first_rows_is_repaired(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, FILED) as runtime:
        await at_version(runtime, 1)
        through = runtime.services.dispatch
        assert isinstance(through, SourceDispatch)
        execute = through.inner.execute

        async def breaks(query_id: QueryId, statement: Statement) -> BatchStream:
            return Broken(await execute(query_id, statement))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(through.inner, "execute", breaks)
            with pytest.raises(DatasetDamagedError):
                await runtime.own("SELECT id FROM orders")
        told = await at_version(runtime, 2)
        assert told["status"] == "ready"


class Broken(StreamDouble):
    """An answer whose second page cannot be read."""

    def __init__(self, stream: BatchStream) -> None:
        self._stream = stream
        self.schema = stream.schema
        self.reads_only_catalog = stream.reads_only_catalog
        self.written = stream.written

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        async for batch in self._stream:
            yield batch
        raise DatasetDamagedError(TableName("orders"))

    async def aclose(self) -> None:
        await self._stream.aclose()
