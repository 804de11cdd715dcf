"""Tasks over accelerated datasets that run again, and are not planned again."""

import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import Op
from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.pieces import StoredPiece
from caraway_core.protocols.fleet import Share, Task
from caraway_core.tables import Keys, StoredTable
from caraway_engine.sharing import kept_version_plans
from caraway_engine.stages import fragments
from caraway_executor.statements.local import LocalExecutor
from tests.executor.stored_numbers import NUMBERS, executor
from tests.kit.changes import logged
from tests.kit.clocks import Clock
from tests.kit.engine import memory, snapshot
from tests.kit.fragments import task
from tests.kit.stored import stored

T, U = TableName("t"), TableName("u")
SCHEMAS = dict.fromkeys(("t", "u", "m"), NUMBERS.schema)
GROUPED = "SELECT g, sum(k) AS s, count(*) AS n FROM t WHERE k >= 10 GROUP BY g"
JOINED = "SELECT t.g, count(*) AS n FROM t JOIN u ON t.k = u.k WHERE u.g < 3 GROUP BY t.g"


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The fragments that were planned."""
    found: list[bytes] = []
    plan = fragments.plan

    def noted(context: Any, fragment: bytes, *others: Any) -> Any:
        found.append(fragment)
        return plan(context, fragment, *others)

    monkeypatch.setattr(fragments, "plan", noted)
    return found


async def rows(local: LocalExecutor, run: Task) -> list[tuple[object, ...]]:
    stream = await local.run_task(run, ())
    batches = [batch async for batch in stream]
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def share(table: TableName, spec: StoredTable, numbers: Sequence[int]) -> Share:
    return Share(table, tuple(StoredPiece(spec.chunks[each].checksum) for each in numbers))


def grouped(ks: Sequence[int]) -> list[tuple[int, int, int]]:
    groups: dict[int, list[int]] = {}
    for k in ks:
        if k >= 10:
            groups.setdefault(k % 7, []).append(k)
    return sorted((g, sum(found), len(found)) for g, found in groups.items())


async def test_a_fragment_over_a_share_is_planned_once(
    tmp_path: Path, planned: list[bytes]
) -> None:
    spec = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": spec})
    run = task(GROUPED, SCHEMAS, shares=[share(T, spec, [0, 1])])

    for _ in range(3):
        assert await rows(local, run) == grouped(range(500))

    assert len(planned) == 1


async def test_each_share_has_a_plan_of_its_own(tmp_path: Path, planned: list[bytes]) -> None:
    spec = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": spec})
    runs = [task(GROUPED, SCHEMAS, shares=[share(T, spec, [each])]) for each in range(4)]

    for _ in range(2):
        for number, run in enumerate(runs):
            assert await rows(local, run) == grouped(range(250 * number, 250 * (number + 1)))

    assert len(planned) == 4


async def test_whole_tables_and_joins_of_them_are_planned_only_the_first_time(
    tmp_path: Path, planned: list[bytes]
) -> None:
    t, u = await stored(tmp_path, NUMBERS, 4), await stored(tmp_path, NUMBERS.slice(500), 2, "u")
    local = executor({"t": t, "u": u})
    wanted = sorted((g, sum(1 for k in range(500, 750) if k % 7 == g < 3)) for g in range(3))
    joined, whole = task(JOINED, SCHEMAS, shares=[share(T, t, [2])]), task(GROUPED, SCHEMAS)

    for _ in range(3):
        assert await rows(local, joined) == wanted
        assert await rows(local, whole) == grouped(range(1000))
        # The first time also finds out that rows have to be loaded.
        assert len(planned) == 4


async def test_a_new_version_is_read(tmp_path: Path, planned: list[bytes]) -> None:
    first = await stored(tmp_path / "1", NUMBERS, 2)
    second = await stored(tmp_path / "2", NUMBERS.slice(100), 2)
    local = executor({"t": first})
    runs = [task(GROUPED, SCHEMAS, version=v, shares=[share(T, spec, [0])])
            for v, spec in ((1, first), (2, second))]  # fmt: skip
    assert await rows(local, runs[0]) == grouped(range(500))
    local.install(snapshot({"t": second}, version=2))

    for _ in range(2):
        assert await rows(local, runs[1]) == grouped(range(100, 550))

    assert len(planned) == 2


async def test_changes_are_read(tmp_path: Path) -> None:
    plain = await stored(tmp_path, NUMBERS, 2)
    spec = replace(plain, keys=Keys(("k",), "refuse"))
    local = executor({"t": spec})
    whole = task("SELECT count(*) AS n FROM t", SCHEMAS)
    entry = await logged(tmp_path, spec, (Op.DELETE, {"k": 1}), (Op.DELETE, {"k": 2}), number=0)
    for logs, count in (({}, 1000), ({spec.key: (entry,)}, 998), ({}, 1000)):
        assert await rows(local, replace(whole, logs=logs)) == [(count,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM t WHERE random() < 0",
        "SELECT t.k FROM t JOIN m ON t.k = m.k",
        "SELECT t.k FROM t, u WHERE t.k < 1 AND u.k < 2",
    ],
)
async def test_other_fragments_are_planned_each_time(
    tmp_path: Path, planned: list[bytes], sql: str
) -> None:
    t, u = await stored(tmp_path, NUMBERS, 2), await stored(tmp_path, NUMBERS, 2, "u")
    local = executor({"t": t, "u": u, "m": memory(k=[1], g=[1])})
    run = task(sql, SCHEMAS)
    first = await rows(local, run)
    planned.clear()

    assert await rows(local, run) == first
    assert planned


async def test_tasks_at_once_do_not_share_a_run(tmp_path: Path, planned: list[bytes]) -> None:
    spec = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": spec})
    run = task(JOINED.replace("u ON", "t u ON"), SCHEMAS)
    await rows(local, run)
    planned.clear()
    streams = [await local.run_task(run, ()) for _ in range(4)]

    found = [sorted([tuple(row.values()) async for batch in each for row in batch.to_pylist()])
             for each in streams]  # fmt: skip

    assert found[0] and all(each == found[0] for each in found)
    assert not planned


async def test_rows_that_a_plan_keeps_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(kept_version_plans.KeptVersionPlans.__init__, "__defaults__", (clock,))
    spec = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": spec})
    runs = [task(GROUPED, SCHEMAS, shares=[share(T, spec, [number])]) for number in (0, 1)]
    for run in runs:
        await rows(local, run)
    assert local.session is not None
    (version,) = local.session.versions
    version.content.clock = clock
    for each in version._base._shares.values():
        each.used_s = clock.now
    clock.now += 61
    await rows(local, runs[1])
    plans = local.session._tasks._repeated._over_versions._kept
    assert len(plans) == 2
    local.let_go()
    gc.collect()

    assert local._chunks._room.taken_bytes == spec.chunks[1].size_bytes
    assert len(plans) == 1


async def test_a_task_says_what_its_own_run_did(tmp_path: Path) -> None:
    spec = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": spec})
    run = replace(task(GROUPED, SCHEMAS), is_profiled=True)
    await rows(local, run)
    first, second = await local.run_task(run, ()), await local.run_task(run, ())

    assert sum([batch.num_rows async for batch in first]) == 7

    profile = first.traits.profile
    assert profile is not None
    scanned = [each.metrics.get("output_rows", 0) for each in profile().operators]
    assert max(scanned) == 990, "the rows of the table after the filter"
    await second.aclose()


async def test_a_schema_that_differs_from_the_plan_is_an_error(tmp_path: Path) -> None:
    spec = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": spec})
    run = task(GROUPED, SCHEMAS)
    await rows(local, run)
    other = replace(run, schema=pa.schema([("c0", pa.string())]))
    with pytest.raises(ExecutionError, match="columns"):
        await rows(local, other)
