"""Datasets that read the snapshots of another runtime."""

import shutil
from pathlib import Path

import pytest

from tests.gateway.api.accelerating import at_version, manifest, refresh, write
from tests.gateway.api.snapshotting import made, place
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.s3 import S3Server, s3_server

__all__ = ["s3_server"]
WRITER = manifest("snapshots: enabled", "partition_by: [v]")
READER = """
        datasets:
          - {{from: 'file:{folder}', name: orders, params: {{file_format: snapshot}}}}
          - {{from: 'file:{folder}', name: others, params: {{file_format: snapshot}}}}
          - {{from: 'file:{empty}', name: nothing, params: {{file_format: snapshot}}}}
"""


async def rows(runtime: Running, name: str = "orders") -> object:
    answer = await runtime.sql(f"SELECT count(*) AS n, count(DISTINCT v) AS v FROM {name}")
    return answer.json() if answer.status_code == 200 else answer.text


async def error_of(runtime: Running, name: str) -> str:
    listed = (await runtime.api.get("/v1/datasets?status=true")).json()
    return str(next(each["error_message"] for each in listed if each["name"] == name))


async def test_a_dataset_follows_the_snapshots_of_another_runtime(tmp_path: Path) -> None:
    writer, reader = tmp_path / "writer", tmp_path / "reader"
    for folder in (writer, reader):
        folder.mkdir()
    write(writer, 50)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x").write_text("")
    async with running(writer, WRITER + place()) as written:
        await at_version(written, 1)
        await made(writer, 1)
        wanted = await rows(written)
        text = READER.format(folder=writer / "snapshots", empty=tmp_path / "empty")
        async with running(reader, text) as read:
            assert await rows(read) == wanted
            for name in ("others", "nothing"):
                assert f"has no snapshot of a dataset '{name}'" in await error_of(read, name)
            write(writer, 80)
            await refresh(written)
            await at_version(written, 2)
            await made(writer, 2)
            newer = await rows(written)

            async def follows() -> bool:
                return await rows(read) == newer

            await eventually(follows, "the newer snapshot is read")
            # The other runtime goes back, and the reader with it.
            path = "/v1/datasets/orders/acceleration/snapshots"
            first = (await written.api.get(path)).json()["snapshots"][0]["snapshot_id"]
            answer = await written.api.post(f"{path}/current", json={"snapshot_id": first})
            assert answer.status_code == 200, answer.text

            async def goes_back() -> bool:
                return await rows(read) == wanted

            await eventually(goes_back, "the chosen snapshot is read")


async def test_a_snapshot_without_rows_is_read(tmp_path: Path) -> None:
    writer, reader = tmp_path / "writer", tmp_path / "reader"
    for folder in (writer, reader):
        folder.mkdir()
    write(writer, 0)
    async with running(writer, WRITER + place()) as written:
        await at_version(written, 1)
        await made(writer, 1)
        wanted = (await written.sql("DESCRIBE orders")).json()
        text = READER.format(folder=writer / "snapshots", empty=writer)
        async with running(reader, text) as read:
            assert await rows(read) == [{"n": 0, "v": 0}]
            assert (await read.sql("DESCRIBE orders")).json() == wanted
            assert (await read.sql("SELECT * FROM orders WHERE id > 1")).json() == []
            write(writer, 20)
            await refresh(written)

            async def follows() -> bool:
                return await rows(read) == [{"n": 20, "v": 5}]

            await eventually(follows, "the snapshot with rows is read")


@pytest.mark.parametrize(
    ("damage", "words"),
    [("dmd-*/*.arrow", "damaged or incomplete"), ("d-*", "damaged or incomplete")],
)
async def test_damaged_snapshots_are_refused(tmp_path: Path, damage: str, words: str) -> None:
    writer, reader = tmp_path / "writer", tmp_path / "reader"
    for folder in (writer, reader):
        folder.mkdir()
    write(writer, 10)
    async with running(writer, WRITER + place()) as written:
        await at_version(written, 1)
        await made(writer, 1)
    for each in (writer / "snapshots").glob(damage):
        each.write_bytes(b"damaged") if each.is_file() else shutil.rmtree(each)
    text = READER.format(folder=writer / "snapshots", empty=writer)
    async with running(reader, text) as read:
        assert words in await error_of(read, "orders")


async def test_snapshots_in_a_bucket_are_read(tmp_path: Path, s3_server: S3Server) -> None:
    s3_server.bucket("source-snapshots")
    params = ", ".join(f"{key}: '{value}'" for key, value in s3_server.params().items())
    writer, reader = tmp_path / "writer", tmp_path / "reader"
    for folder in (writer, reader):
        folder.mkdir()
    write(writer, 30)
    async with running(writer, WRITER + place("s3://source-snapshots/a/b", params)) as written:
        await at_version(written, 1)

        async def is_made() -> bool:
            found = s3_server.client.list_objects_v2(Bucket="source-snapshots").get("Contents", [])
            return any("/md-" in each["Key"] for each in found)

        await eventually(is_made, "the snapshot is in the bucket")
        wanted = await rows(written)
    text = f"""
        datasets:
          - from: s3://source-snapshots/a/b/
            name: orders
            params: {{file_format: snapshot, {params}}}
    """
    async with running(reader, text) as read:
        assert await rows(read) == wanted
