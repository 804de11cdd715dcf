"""Chunks that an executor has are stored again where they are damaged in their store."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from caraway_core.ids import TableName
from caraway_core.tables import StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from tests.executor.stored_numbers import NUMBERS, everything
from tests.kit.engine import memory, snapshot
from tests.kit.stored import path_of, stored

T = TableName("t")


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def executor() -> LocalExecutor:
    made = LocalExecutor(EngineSettings(2))
    assert made.install(snapshot({"t": memory(k=[1])})) == {}
    return made


@pytest.mark.parametrize("damage", [flip_a_bit, truncate, Path.unlink])
@pytest.mark.parametrize("rows", [NUMBERS, everything()], ids=["numbers", "all types"])
async def test_what_is_in_memory_is_stored_as_it_was(
    tmp_path: Path, damage: Callable[[Path], None], rows: object
) -> None:
    spec = await stored(tmp_path, rows, 3)
    local = executor()
    await local.load(T, spec)
    before = [path_of(spec, number).read_bytes() for number in range(3)]
    assert await local.put_back(T, spec) == 0
    for number in (0, 2):
        damage(path_of(spec, number))
    assert await local.put_back(T, spec) == 2
    assert [path_of(spec, number).read_bytes() for number in range(3)] == before
    local.close()


async def test_what_is_not_here_is_left_as_it_is(tmp_path: Path) -> None:
    spec = await stored(tmp_path, NUMBERS, 2)
    local = executor()
    path_of(spec).unlink()
    assert await local.put_back(T, spec) == 0
    assert not path_of(spec).exists()
    local.close()


async def test_a_file_that_is_read_where_it_lies_is_no_copy(tmp_path: Path) -> None:
    spec = replace(await stored(tmp_path, NUMBERS, 1), is_mapped=True)
    local = executor()
    await local.load(T, spec)
    path_of(spec).unlink()
    assert await local.put_back(T, spec) == 0
    local.close()


async def test_shares_that_are_loaded_at_once_are_both_kept(tmp_path: Path) -> None:
    """With replicas an executor loads its own share and that of another at the same time."""
    spec: StoredTable = replace(await stored(tmp_path, NUMBERS, 2), replicas=2)
    local = executor()
    first, second = local._sessions.version_of(T, spec).names
    await asyncio.gather(local.load(T, spec, pieces=[first]), local.load(T, spec, pieces=[second]))
    assert all(local._chunks.held(chunk) is not None for chunk in spec.chunks)
    local.close()
