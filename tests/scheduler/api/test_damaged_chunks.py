"""Chunks of accelerated datasets that are damaged where they are stored, in one runtime."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.scheduler.api import test_changes as changes
from tests.scheduler.api.test_acceleration import at_version, manifest, standing, write

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
    """Wait for the refusal of a query, once the stored version is there."""

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

        await eventually(look, "the dataset is loaded again", 20)


async def test_a_dataset_whose_rows_came_as_changes_says_what_to_do(tmp_path: Path) -> None:
    async with running(tmp_path, changes.KEYED) as runtime:
        await changes.ready(runtime)
        await changes.send(runtime, changes.event("c", 1, "a"))
    damage_all(tmp_path, flip_a_bit)
    async with running(tmp_path, changes.KEYED) as runtime:
        await refused(runtime, tmp_path)

        async def look() -> bool:
            return await status(runtime) == "error"

        await eventually(look, "its status says so")
        assert "from a backup" in (await standing(runtime))["error"]
        listed = await runtime.api.get("/v1/datasets?status=true")
        assert "from a backup" in listed.text and str(tmp_path) not in listed.text
