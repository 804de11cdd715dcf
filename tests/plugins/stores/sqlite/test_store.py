"""Failures that only SQLite files have: damage, permissions, foreign files, growth."""

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError, StateAwayError, StateFullError
from caraway_core.process import disks
from caraway_core.protocols.state import StateEntry
from caraway_plugins.stores import watching
from caraway_plugins.stores.sqlite import SqliteStateStore, errors, file
from tests.kit.disks import disk_with_room_for
from tests.plugins.stores.adapters import POLL_S, Clock

# Codes that only a bug of ours causes, or that are not errors; all others need advice.
OURS = """ABORT AUTH CONSTRAINT DENY DONE EMPTY ERROR FORMAT IGNORE INTERNAL INTERRUPT MISMATCH
MISUSE NOTFOUND NOTICE OK RANGE ROW SCHEMA WARNING""".split()
# Statement names for SQLite's authorizer; the numbers do not matter here.
ACTIONS = """ANALYZE ATTACH DELETE DETACH FUNCTION INSERT PRAGMA READ RECURSIVE REINDEX SAVEPOINT
SELECT TRANSACTION UPDATE""".split()


def refusal(path: Path) -> str:
    with pytest.raises(CarawayError) as caught:
        SqliteStateStore(path)
    assert str(path) in caught.value.message
    return caught.value.message


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


@contextmanager
def unprivileged() -> Iterator[None]:
    """Drop root's rights, because file permissions do not apply to root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def readable_folder() -> Iterator[Path]:
    """A folder that other users can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield folder
        folder.chmod(0o755)


async def test_store_makes_the_folders_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "state.db"
    await SqliteStateStore(path).aclose()
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]


def test_commits_reach_the_disk(tmp_path: Path) -> None:
    with closing(file.open_file(tmp_path / "state.db")) as connection:
        full = 2
        assert connection.execute("PRAGMA synchronous").fetchone() == (full,)


def test_file_that_is_no_database_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"no database " * 1000)
    before = path.read_bytes()
    assert "damaged" in refusal(path)
    assert path.read_bytes() == before


async def test_damage_inside_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    for number in range(50):
        await store.compare_and_set(f"key/{number}", b"x" * 500, expected=None)
    await store.aclose()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xaa" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(CarawayError, match="damaged: stop every process"):
        damaged = SqliteStateStore(path)
        try:
            await damaged.scan("")
        finally:
            await damaged.aclose()


def test_database_of_another_application_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    rows(path, "CREATE TABLE theirs (x)")
    before = path.read_bytes()
    assert "another application" in refusal(path)
    assert path.read_bytes() == before


async def test_file_of_a_newer_caraway_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await SqliteStateStore(path).aclose()
    rows(path, f"PRAGMA user_version = {file.FORMAT_VERSION + 1}")
    assert "format 2" in refusal(path)


def test_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    assert "permission to write" in refusal(tmp_path)


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "permission to write" in refusal(tmp_path / "file" / "state.db")


async def test_file_that_may_only_be_read_is_refused_at_start(readable_folder: Path) -> None:
    path = readable_folder / "state.db"
    await SqliteStateStore(path).aclose()
    path.chmod(0o444)
    readable_folder.chmod(0o777)
    (readable_folder / "state.db-lock").chmod(0o666)
    with unprivileged():
        assert "permission to write" in refusal(path)


def test_folder_that_may_only_be_read_is_refused(readable_folder: Path) -> None:
    readable_folder.chmod(0o555)
    with unprivileged():
        assert "permission to write" in refusal(readable_folder / "state.db")


def test_file_that_stays_locked_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    file.open_file(path).close()
    monkeypatch.setattr(file, "BUSY_TIMEOUT_S", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "holds the file locked" in refusal(path)


async def test_full_disk_fails_the_write_and_keeps_the_store(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    revision = await store.compare_and_set("a", b"1", expected=None)
    await store._writes.run_work(
        lambda opened: opened.execute("PRAGMA max_page_count = 1").fetchall()
    )
    with pytest.raises(StateFullError, match="free space"):
        await store.append("log", b"x" * 1_000_000)
    await store._writes.run_work(lambda opened: opened.execute("PRAGMA max_page_count = 9999999"))
    assert await store.get("a") == StateEntry("a", b"1", revision or 0)
    assert await store.append("log", b"x") == 0
    await store.aclose()


async def test_store_opens_on_a_full_disk_with_the_room_that_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept, prepare = tmp_path / "state.db", tmp_path / "state.db-reserve", file._prepare
    store = SqliteStateStore(path)
    revision = await store.compare_and_set("a", b"1", expected=None)
    await store.aclose()
    assert kept.stat().st_blocks * 512 >= file.RESERVES_BYTES[0]

    def has_room(connection: sqlite3.Connection, path: Path) -> None:
        if kept.exists():
            raise sqlite3.OperationalError("disk I/O error")
        prepare(connection, path)

    monkeypatch.setattr(file, "_prepare", has_room)
    monkeypatch.setattr(file, "reserve", lambda _path: None)
    again = SqliteStateStore(path)
    assert await again.get("a") == StateEntry("a", b"1", revision or 0)
    await again.aclose()


def test_full_disk_is_named_where_sqlite_speaks_of_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = sqlite3.OperationalError("disk I/O error")
    failed.sqlite_errorcode = sqlite3.SQLITE_IOERR | (19 << 8)
    with pytest.raises(StateAwayError, match="check the disk"), errors.explained(tmp_path / "s"):
        raise failed
    monkeypatch.setattr(disks, "has_no_room", lambda folder: folder == tmp_path)
    with pytest.raises(StateFullError, match="free space"), errors.explained(tmp_path / "s"):
        raise failed


def test_each_outside_cause_has_advice() -> None:
    named = {
        name.removeprefix("SQLITE_")
        for name in dir(sqlite3)
        if name.startswith("SQLITE_") and name.count("_") == 1
    }
    causes = named.difference(OURS, ACTIONS)
    assert {getattr(sqlite3, f"SQLITE_{cause}") for cause in causes} == set(errors._ADVICE)


async def test_disk_that_takes_no_more_is_away_and_comes_back(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    with disk_with_room_for(0), pytest.raises(StateAwayError):
        await store.append("log", b"x" * 1_000_000)
    assert await store.append("log", b"x") == 0
    await store.aclose()


async def test_expired_entries_and_old_deletions_leave_the_file(tmp_path: Path) -> None:
    clock = Clock()
    store = SqliteStateStore(tmp_path / "state.db", clock, poll_s=POLL_S)
    for number in range(10):
        await store.compare_and_set(f"key/{number}", b"secret", expected=None, ttl_s=1)
    clock.now += 1
    await store.compare_and_set("other", b"x", expected=None)
    left = "SELECT count(*), count(value) FROM entries"
    assert rows(tmp_path / "state.db", left) == [(11, 1)]
    clock.now += watching.TRACE_KEPT_S
    await store.compare_and_set("another", b"x", expected=None)
    assert rows(tmp_path / "state.db", left) == [(2, 2)]
    await store.aclose()


async def test_watcher_that_missed_forgotten_deletions_is_told(tmp_path: Path) -> None:
    clock = Clock()
    store = SqliteStateStore(tmp_path / "state.db", clock, poll_s=POLL_S)
    revision = await store.compare_and_set("a", b"1", expected=None)
    watcher = store.watch("")
    await store.compare_and_set("a", None, expected=revision)
    clock.now += watching.TRACE_KEPT_S
    await store.compare_and_set("b", b"1", expected=None)
    with pytest.raises(CarawayError, match="start a new watch"):
        await anext(watcher)
    await store.aclose()


async def test_watcher_does_not_wait_for_the_poll_after_a_write_of_its_process(
    tmp_path: Path,
) -> None:
    never = 3600.0
    store = SqliteStateStore(tmp_path / "state.db", poll_s=never)
    waiting = asyncio.ensure_future(anext(store.watch("a")))
    await store.get("a")
    await store.get("a")
    await store.compare_and_set("a", b"1", expected=None)
    assert (await asyncio.wait_for(waiting, 60)).value == b"1"
    await store.aclose()
