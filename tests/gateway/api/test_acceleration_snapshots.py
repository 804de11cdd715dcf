"""Snapshots of accelerated datasets: written after changes, and used by new runtimes."""

import shutil
from pathlib import Path

import pytest

from tests.gateway.api.accelerating import at_version, count, manifest, refresh, write
from tests.gateway.api.snapshotting import made, marks, place
from tests.kit.deadlines import eventually
from tests.kit.runtime import running
from tests.kit.s3 import S3Server, s3_server

__all__ = ["s3_server"]


async def test_a_new_runtime_starts_from_the_last_snapshot_without_the_source(
    tmp_path: Path,
) -> None:
    write(tmp_path, 1000)
    text = manifest("engine: file", "snapshots: enabled") + place()
    async with running(tmp_path, text) as runtime:
        await at_version(runtime, 1)
        await made(tmp_path, 1)
        write(tmp_path, 1200)
        await refresh(runtime)
        await at_version(runtime, 2)
        await made(tmp_path, 2)
    shutil.rmtree(tmp_path / "data-dir")
    (tmp_path / "orders.parquet").unlink()
    async with running(tmp_path, text) as runtime:
        told = await at_version(runtime, 1)
        assert told["version"]["rows"] == 1200
        assert await count(runtime, "v = 'v3'") == 240


async def test_the_number_of_snapshots_is_bounded(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest("snapshots: create_only") + place()) as runtime:
        for number in range(1, 5):
            await at_version(runtime, number)
            seen = marks(tmp_path)
            await refresh(runtime)
            await at_version(runtime, number + 1)

            async def look(seen: list[str] = seen) -> bool:
                return len(marks(tmp_path)) == 2 and marks(tmp_path) != seen

            if number > 2:
                await eventually(look, "two snapshots are there, the last of them new")
    parts = [path for path in (tmp_path / "snapshots").iterdir() if path.name[0] != "."]
    assert len(parts) <= 3 * 3


async def test_a_snapshot_with_another_origin_is_not_used(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest("snapshots: enabled") + place()) as runtime:
        await at_version(runtime, 1)
        await made(tmp_path, 1)
    shutil.rmtree(tmp_path / "data-dir")
    other = manifest("snapshots: enabled", "refresh_sql: SELECT * FROM orders WHERE id < 3")
    async with running(tmp_path, other + place()) as runtime:
        told = await at_version(runtime, 1)
        assert told["version"]["rows"] == 3


async def test_a_damaged_snapshot_is_logged_and_the_source_is_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, 10)
    text = manifest("snapshots: enabled") + place()
    async with running(tmp_path, text) as runtime:
        await at_version(runtime, 1)
        await made(tmp_path, 1)
    shutil.rmtree(tmp_path / "data-dir")
    for chunk in (tmp_path / "snapshots").glob("d-*/*.arrow"):
        chunk.write_bytes(b"damaged")
    async with running(tmp_path, text) as runtime:
        await at_version(runtime, 1)
        assert await count(runtime) == 10
    assert "cannot start from its snapshot" in caplog.text


async def test_snapshots_go_to_a_bucket(tmp_path: Path, s3_server: S3Server) -> None:
    s3_server.bucket("snapshots")
    params = ", ".join(f"{key}: '{value}'" for key, value in s3_server.params().items())
    write(tmp_path, 100)
    text = manifest("snapshots: enabled") + place("s3://snapshots/a", params)
    async with running(tmp_path, text) as runtime:
        await at_version(runtime, 1)

        async def look() -> bool:
            found = s3_server.client.list_objects_v2(Bucket="snapshots").get("Contents", [])
            return any("/md-" in each["Key"] for each in found)

        await eventually(look, "the snapshot is in the bucket")
    shutil.rmtree(tmp_path / "data-dir")
    (tmp_path / "orders.parquet").unlink()
    async with running(tmp_path, text) as runtime:
        assert (await at_version(runtime, 1))["version"]["rows"] == 100
