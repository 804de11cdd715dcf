"""Changes that violate constraints, come at bad moments or do not fit, in one runtime."""

import asyncio
import sqlite3
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from caraway_acceleration.upkeep import compaction
from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_core.errors import CarawayError
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_plugins.stores.sqlite import errors as sqlite_errors
from tests.gateway.api.refusing_changes import UNIQUE, Overtaken, refused
from tests.gateway.api.sending_changes import KEYED, event, manifest, ready, row, rows, send
from tests.kit.deadlines import eventually
from tests.kit.disks import BROKEN, FULL, disk_with_room_for, failing_fsync
from tests.kit.runtime import running


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"op": "c", "after": {"id": 7, "v": "x", "w": 1}}, "column 'w' is not in the dataset"),
        ({"op": "c", "after": {"id": "seven", "v": "x"}}, "event 2: column 'id': an integer"),
        ({"op": "c", "after": {"v": "x"}}, "primary key column 'id' is missing"),
        ({"op": "z", "after": {"id": 7}}, "known: c (create), u (update), d (delete)"),
        ({"op": "c"}, "needs the row as an object in 'after'"),
    ],
)
async def test_nothing_of_a_request_with_one_bad_event_is_applied(
    tmp_path: Path, bad: Any, words: str
) -> None:
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "a"))
        assert words in await refused(runtime, event("c", 2, "b"), bad)
        assert await rows(runtime) == [(1, "a")]
        await send(runtime, event("c", 2, "b"))
        assert await rows(runtime) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("action", "wanted"),
    [("", "second"), ("drop", "first"), ("upsert", "second"), ("upsert_dedup", "second")],
)
async def test_rows_with_an_existing_primary_key(tmp_path: Path, action: str, wanted: str) -> None:
    lines = ["primary_key: id", *([f"on_conflict: {{id: {action}}}"] if action else [])]
    async with running(tmp_path, manifest(*lines)) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "first"), event("c", 2, "x"), event("c", 1, "second"))
        assert await rows(runtime) == [(1, wanted), (2, "x")]
        await send(runtime, event("c", 2, "y"))
        assert await rows(runtime, "SELECT v FROM orders WHERE id = 2") == [
            ("x" if action == "drop" else "y",)
        ]


async def test_unique_indexes_stay_unique(tmp_path: Path) -> None:
    words = "(v) = 'a' would be duplicated, but its index is `unique`"
    async with running(tmp_path, UNIQUE) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "a"), event("c", 2, "b"))
        for each in (event("c", 3, "a"), event("u", 2, "a")):
            assert words in await refused(runtime, event("c", 9, "z"), each)
            assert await rows(runtime) == [(1, "a"), (2, "b")]
        # Only the state after a request counts.
        await send(runtime, event("u", 2, "a"), event("u", 1, "b"))
        assert await rows(runtime, "SELECT id FROM orders WHERE v = 'a'") == [(2,)]
        await send(runtime, event("d", 2), event("c", 3, "a"))
        assert await rows(runtime) == [(1, "b"), (3, "a")]
        none = [{"op": "c", "after": row(id_, "") | {"v": None}} for id_ in (4, 5)]
        await send(runtime, *none)
        assert await rows(runtime, "SELECT count(*) FROM orders") == [(4,)]
        await send(runtime, {"op": "t"}, event("c", 7, "a"))
        assert await rows(runtime) == [(7, "a")]
    async with running(tmp_path, UNIQUE) as runtime:
        await ready(runtime)
        assert words in await refused(runtime, event("c", 8, "a"))


async def test_unique_indexes_stay_unique_over_their_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 3)
    async with running(tmp_path, UNIQUE) as runtime:
        await ready(runtime)
        await send(runtime, *(event("c", number, f"v{number}") for number in range(20)))

        async def look() -> bool:
            return bool(await rows(runtime, "SELECT sum(rows) FROM runtime.partitions") == [(20,)])

        await eventually(look, "the log is part of the base")
        assert "(v) = 'v7'" in await refused(runtime, event("c", 50, "v7"))
        await send(runtime, event("d", 7), event("c", 50, "v7"))
        assert await rows(runtime, "SELECT id FROM orders WHERE v = 'v7'") == [(50,)]


async def test_only_concurrent_requests_that_violate_an_index_fail(tmp_path: Path) -> None:
    async with running(tmp_path, UNIQUE) as runtime:
        await ready(runtime)

        async def post(id_: int) -> int:
            got = await runtime.api.post("/v1/datasets/orders/cdc", json=event("c", id_, "same"))
            return int(got.status_code)

        found = await asyncio.gather(*(post(id_) for id_ in range(12)))
        assert sorted(found) == [200] + [400] * 11
        assert await rows(runtime, "SELECT count(*), min(v) FROM orders") == [(1, "same")]


async def test_rows_without_a_key_exist_once_after_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change during a compaction is in the log, but not also in the base."""
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 20)
    overtaken = Overtaken(monkeypatch, event("c", 100, "late"), event("c", 101, "late"))
    async with running(tmp_path, manifest()) as runtime:
        await ready(runtime)
        overtaken.runtime = runtime
        await send(runtime, *(event("c", number, "x") for number in range(30)))

        async def look() -> bool:
            return bool(await rows(runtime, "SELECT sum(rows) FROM runtime.partitions") == [(30,)])

        await eventually(look, "the log is part of the base")
        found = await rows(runtime, "SELECT count(*), count(DISTINCT id) FROM orders")
        assert overtaken.times == 1
        assert found == [(32, 32)]


async def test_changes_are_applied_while_expired_rows_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = manifest(
        "primary_key: id",
        "retention_check_enabled: true",
        "retention_period: 1h",
        "retention_check_interval: 100ms",
        more="time_column: n\n            time_format: unix_seconds",
    )
    now = int(time.time())

    def made(id_: int, age_s: int) -> Any:
        return {"op": "c", "after": {"id": id_, "v": "x", "n": now - age_s}}

    overtaken = Overtaken(monkeypatch, made(100, 0))
    async with running(tmp_path, text) as runtime:
        await ready(runtime)
        overtaken.runtime = runtime
        await send(runtime, *(made(id_, 7200) for id_ in range(10)), made(50, 0))

        async def look() -> bool:
            return bool(await rows(runtime, "SELECT id FROM orders ORDER BY id") == [(50,), (100,)])

        await eventually(look, "old rows are gone, and no others")
        assert overtaken.times
        await send(runtime, made(1, 0))
        assert await rows(runtime, "SELECT count(*) FROM orders") == [(3,)]


@pytest.mark.parametrize("lines", [(), ("engine: file", "mode: file")])
async def test_changes_that_do_not_fit_are_not_acknowledged(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    limit = "        runtime:\n          query: {memory_limit: 48MiB}\n"
    text = limit + KEYED.replace(
        "            acceleration:\n",
        "            acceleration:\n" + "".join(f"              {each}\n" for each in lines),
    ).replace("        runtime:\n          caching: {sql_results: {item_ttl: 1h}}\n", "")
    async with running(tmp_path, text) as runtime:
        await ready(runtime)
        applied, message = 0, ""
        for start in range(0, 100_000, 200):
            batch = [event("c", start + number, "x" * 5000) for number in range(200)]
            got = await runtime.api.post("/v1/datasets/orders/cdc", json=batch)
            if got.status_code != 200:
                message = got.json()["message"]
                break
            applied += 200
        assert applied and "memory" in message, (applied, message)
        for _ in range(2):
            assert await rows(runtime, "SELECT count(*) FROM orders") == [(applied,)]
        assert await rows(runtime, "SELECT length(v) FROM orders WHERE id = 3") == [(5000,)]
        await send(runtime, *(event("d", number) for number in range(3)))
        assert await rows(runtime, "SELECT count(*) FROM orders") == [(applied - 3,)]


async def test_a_crash_before_a_flip_loses_no_acknowledged_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip, is_cut = CurrentVersion.flip, False

    async def cut(self: CurrentVersion, *args: Any) -> None:
        if is_cut:
            raise CarawayError("the process ends here")
        await flip(self, *args)

    monkeypatch.setattr(CurrentVersion, "flip", cut)
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "a"))
        is_cut = True
        assert "ends here" in await refused(
            runtime, event("u", 1, "b"), event("c", 2, "b"), status=500
        )
        assert await rows(runtime) == [(1, "a")]
    is_cut = False
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        assert await rows(runtime) == [(1, "a")]
        await send(runtime, event("u", 1, "b"), event("c", 2, "b"))
        assert await rows(runtime) == [(1, "b"), (2, "b")]


async def test_files_and_their_log_are_read_again_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 15)
    text = manifest("engine: file", "mode: file", "primary_key: id", "indexes: {v: unique}")
    for start in range(0, 40, 10):
        async with running(tmp_path, text) as runtime:
            await ready(runtime)
            assert await rows(runtime, "SELECT count(*) FROM orders") == [(start,)]
            for id_ in range(start, start + 10):
                await send(runtime, event("c", id_, f"v{id_}"))
            assert (await runtime.api.get("/v1/ready")).text == "ready"
            last = f"SELECT id FROM orders WHERE v = 'v{start + 9}'"
            assert await rows(runtime, last) == [(start + 9,)]


async def _refused_until_mended(tmp_path: Path, broken: AbstractContextManager[None]) -> Any:
    """Send a batch to a broken disk, then to the repaired one; return the refusal."""
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "a"))
        batch = [event("c", number, "b" * 100) for number in range(2, 4000)]
        with broken:
            got = await runtime.api.post("/v1/datasets/orders/cdc", json=batch)
            assert await rows(runtime) == [(1, "a")]
        assert await rows(runtime) == [(1, "a")]
        assert await send(runtime, *batch) == len(batch)
        assert await rows(runtime, "SELECT count(*), max(id) FROM orders") == [(3999, 3999)]
        return got


async def test_a_full_disk_rejects_changes_until_there_is_room(tmp_path: Path) -> None:
    got = await _refused_until_mended(tmp_path, disk_with_room_for(200_000))
    assert (got.status_code, got.headers["retry-after"]) == (507, "10")
    assert "free or add space" in got.json()["message"]
    assert str(tmp_path) not in got.text


@pytest.mark.parametrize("number", [*FULL, *BROKEN])
async def test_a_failing_disk_rejects_changes_until_it_is_repaired(
    tmp_path: Path, number: int
) -> None:
    got = await _refused_until_mended(tmp_path, failing_fsync(number))
    assert got.status_code == (507 if number in FULL else 503)
    assert "retry-after" in got.headers
    assert "/secret/path" not in got.text


async def test_a_full_state_store_rejects_changes_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = SqliteStateStore.compare_and_set
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        await send(runtime, event("c", 1, "a"))

        async def full(*_: Any, **__: Any) -> Any:
            with sqlite_errors.explained(tmp_path):
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error

        monkeypatch.setattr(SqliteStateStore, "compare_and_set", full)
        message = await refused(runtime, event("c", 2, "b"), status=507)
        assert "no room" in message
        monkeypatch.setattr(SqliteStateStore, "compare_and_set", write)
        assert await rows(runtime) == [(1, "a")]
        await send(runtime, event("c", 2, "b"))
        assert await rows(runtime) == [(1, "a"), (2, "b")]


async def test_answers_never_show_an_earlier_state(tmp_path: Path) -> None:
    """Readers repeat one query all the time, so that each change meets a running answer."""
    sql = "SELECT count(*) AS n FROM orders"
    async with running(tmp_path, KEYED) as runtime:
        await ready(runtime)
        applied, is_over = 0, False

        async def read() -> None:
            while not is_over:
                least = applied
                assert (await runtime.sql(sql)).json()[0]["n"] >= least
                await asyncio.sleep(0)

        readers = [asyncio.ensure_future(read()) for _ in range(4)]
        for number in range(40):
            await send(runtime, event("c", number, "x"))
            applied = number + 1
            for _ in range(2):
                assert (await runtime.sql(sql)).json() == [{"n": applied}]
        is_over = True
        await asyncio.gather(*readers)
