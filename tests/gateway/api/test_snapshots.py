"""Snapshots over HTTP: which exist, and a dataset that is rolled back and forward."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from tests.gateway.api.accelerating import at_version, count, manifest, refresh, write
from tests.gateway.api.snapshotting import made, marks, place
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

PATH = "/v1/datasets/orders/acceleration/snapshots"


async def listed(runtime: Running, **query: int) -> list[dict[str, Any]]:
    answer = await runtime.api.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["dataset_name"], body["location"]) == ("orders", "file:snapshots")
    current = [each["snapshot_id"] for each in body["snapshots"] if each["is_current"]]
    assert current in ([], [body["current_snapshot_id"]])
    return list(body["snapshots"])


async def choose(runtime: Running, number: object, **headers: str) -> tuple[int, str]:
    answer = await runtime.api.post(
        f"{PATH}/current", json={"snapshot_id": number}, headers=headers
    )
    return answer.status_code, answer.json()["message"]


async def test_a_dataset_is_rolled_back_and_forward_and_starts_where_it_was(
    tmp_path: Path,
) -> None:
    text = manifest("engine: file", "snapshots: enabled", "snapshots_keep: 3") + place()
    write(tmp_path, 100)
    async with running(tmp_path, text) as runtime:
        await at_version(runtime, 1)
        await made(tmp_path, 1)
        for number, rows in ((2, 200), (3, 300)):
            write(tmp_path, rows)
            await refresh(runtime)
            await at_version(runtime, number)
            await made(tmp_path, number)
        found = await listed(runtime)
        assert [each["row_count"] for each in found] == [100, 200, 300]
        assert [each["is_current"] for each in found] == [False, False, True]
        assert [each["row_count"] for each in await listed(runtime, limit=1)] == [300]
        first, second, third = (each["snapshot_id"] for each in found)
        one = (await runtime.api.get(f"{PATH}/{first}")).json()
        assert one == found[0]
        assert one["checksum_algorithm"] == "SHA256"
        assert one["size_bytes"] > 0
        before = marks(tmp_path)
        for version, number, rows in ((4, first, 100), (5, third, 300), (6, second, 200)):
            status, message = await choose(runtime, number)
            assert (status, message) == (
                200,
                f"Dataset 'orders' is read from the snapshot {number}.",
            )
            await at_version(runtime, version)
            assert await count(runtime) == rows
            current = [each["snapshot_id"] for each in await listed(runtime) if each["is_current"]]
            assert current == [number]
    # A version from a snapshot is not written as another snapshot, and the last choice is kept.
    (choice,) = set(marks(tmp_path)) - set(before)
    assert set(before) < set(marks(tmp_path))
    assert len(choice.split("-")) == 5
    shutil.rmtree(tmp_path / "data-dir")
    (tmp_path / "orders.parquet").unlink()
    async with running(tmp_path, text) as runtime:
        assert (await at_version(runtime, 1))["version"]["rows"] == 200


async def test_a_newer_snapshot_is_the_current_one_and_older_ones_expire(tmp_path: Path) -> None:
    text = manifest("snapshots: enabled") + place()
    write(tmp_path, 10)
    async with running(tmp_path, text) as runtime:
        await at_version(runtime, 1)
        await made(tmp_path, 1)
        write(tmp_path, 20)
        await refresh(runtime)
        await at_version(runtime, 2)
        await made(tmp_path, 2)
        first, second = (each["snapshot_id"] for each in await listed(runtime))
        assert (await choose(runtime, first))[0] == 200
        await at_version(runtime, 3)
        for version, rows in ((4, 30), (5, 40)):
            write(tmp_path, rows)
            seen = marks(tmp_path)
            await refresh(runtime)
            await at_version(runtime, version)
            await newer(tmp_path, seen)
        found = await listed(runtime)
        assert [each["row_count"] for each in found] == [30, 40]
        assert found[1]["is_current"]
        gone = await runtime.api.get(f"{PATH}/{first}")
        assert (gone.status_code, "not any more" in gone.json()["message"]) == (404, True)
        status, message = await choose(runtime, second)
        assert (status, f"has no snapshot {second}" in message) == (404, True)
        assert await count(runtime) == 40


async def newer(folder: Path, seen: list[str]) -> None:
    async def look() -> bool:
        return bool(set(marks(folder)) - set(seen)) and len(marks(folder)) == 2

    await eventually(look, "a newer snapshot is made, and the oldest one is gone")


async def test_two_requests_at_once_are_done_one_after_the_other(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest("snapshots: enabled") + place()) as runtime:
        await at_version(runtime, 1)
        await made(tmp_path, 1)
        write(tmp_path, 20)
        await refresh(runtime)
        await at_version(runtime, 2)
        await made(tmp_path, 2)
        first, second = (each["snapshot_id"] for each in await listed(runtime))
        answers = await asyncio.gather(*(choose(runtime, each) for each in (first, second)))
        assert [status for status, _ in answers] == [200, 200]
        await at_version(runtime, 4)
        current = [each for each in await listed(runtime) if each["is_current"]]
        assert [each["row_count"] for each in current] == [await count(runtime)]


async def test_what_cannot_be_chosen_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 10)
    keys = "\n        runtime: {auth: {api-key: {keys: ['w:rw', 'r']}}}\n"
    more = (
        "          - {from: 'file:orders.parquet', name: plain}\n"
        "          - {from: 'file:orders.parquet', name: without, acceleration: {enabled: true}}\n"
        "          - from: cdc:events\n            name: events\n"
        "            columns: [{name: id, type: bigint}]\n"
        "            acceleration: {enabled: true, refresh_mode: changes, snapshots: enabled,\n"
        "              snapshots_trigger: time_interval, snapshots_trigger_threshold: 1h}\n"
    )
    text = manifest("snapshots: enabled").rstrip() + "\n" + more + place() + keys
    async with running(tmp_path, text) as runtime:
        runtime.api.headers["x-api-key"] = "w"
        await at_version(runtime, 1)
        await made(tmp_path, 1)
        (found,) = await listed(runtime)
        number = found["snapshot_id"]
        assert (await choose(runtime, number, **{"x-api-key": "r"}))[0] == 403
        for wrong in ("1", 1.5, True, None, -1, 2**70):
            assert (await choose(runtime, wrong))[0] == 400, wrong
        status, message = await choose(runtime, 7)
        assert (status, "has no snapshot 7" in message) == (404, True)
        for content in (b"", b"[]", b"{", b'{"snapshot_id": 1, "x": 2}'):
            answer = await runtime.api.post(f"{PATH}/current", content=content)
            assert answer.status_code == 400, content
        for query in ("limit=0", "limit=x", "limit=1001"):
            assert (await runtime.api.get(f"{PATH}?{query}")).status_code == 400
        for name, wanted, words in (
            ("none", 404, "no dataset 'none'"), ("plain", 400, "is not accelerated"),
            ("without", 400, "has no snapshots"),
        ):  # fmt: skip
            path = f"/v1/datasets/{name}/acceleration/snapshots"
            for answer in (
                await runtime.api.get(path),
                await runtime.api.get(f"{path}/{number}"),
                await runtime.api.post(f"{path}/current", json={"snapshot_id": number}),
            ):
                assert answer.status_code == wanted, answer.text
                assert words in answer.json()["message"]
                assert str(tmp_path) not in answer.text
        changes = await runtime.api.post(
            "/v1/datasets/events/acceleration/snapshots/current", json={"snapshot_id": number}
        )
        assert (changes.status_code, "takes changes" in changes.text) == (400, True)
        empty = (await runtime.api.get("/v1/datasets/events/acceleration/snapshots")).json()
        assert (empty["snapshots"], empty["current_snapshot_id"]) == ([], None)
        assert await count(runtime) == 10


async def test_damaged_snapshots_are_listed_and_change_nothing(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest("snapshots: enabled") + place()) as runtime:
        await at_version(runtime, 1)
        await made(tmp_path, 1)
        (found,) = await listed(runtime)
        for chunk in (tmp_path / "snapshots").glob("d-*/*.arrow"):
            chunk.write_bytes(b"damaged")
        status, message = await choose(runtime, found["snapshot_id"])
        assert status == 500, message
        assert str(tmp_path) not in message
        assert await count(runtime) == 10
        for chunk in (tmp_path / "snapshots").glob("dmd-*/*.arrow"):
            chunk.write_bytes(b"damaged")
        (damaged,) = await listed(runtime)
        assert damaged["row_count"] is None
        assert (await choose(runtime, found["snapshot_id"]))[0] == 500
        assert await count(runtime) == 10
