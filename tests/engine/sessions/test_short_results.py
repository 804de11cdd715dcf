"""Short results are read by the thread that starts them, and only over rows that are the same."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_core.tables import FileScan, FilesTable
from caraway_engine.execution.streams import EngineStream, StartedPlan
from caraway_engine.scans import presence
from caraway_engine.sessions import short_results
from caraway_engine.sessions.plans import Startable
from caraway_engine.sessions.sessions import Session
from caraway_engine.sessions.short_results import ShortResults
from tests.kit.engine import memory, session

SCHEMA = pa.schema({"id": pa.int64()})
COUNT = "SELECT count(*) AS n FROM t"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sure that a busy machine does not change which results are short."""
    monkeypatch.setattr(short_results, "_MOST_S", 60.0)
    monkeypatch.setattr(short_results, "_INSTANT_S", 60.0)


def files(path: str) -> FilesTable:
    return FilesTable(SCHEMA, (FileScan("parquet", (path,), SCHEMA, ".parquet"),))


def write(path: Path, count: int) -> None:
    pq.write_table(pa.table({"id": range(count)}, SCHEMA), path)


async def run(of: Session, sql: str) -> tuple[list[dict[str, Any]], bool]:
    """Return the rows, and whether all were there when the statement had started."""
    stream = of.start(Statement(sql, {}))
    is_read = stream._stream is None
    return [row async for batch in stream for row in batch.to_pylist()], is_read


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write(tmp_path / "t.parquet", 3)
    return tmp_path / "t.parquet"


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1 AS one, 'x' AS two", COUNT, "SELECT * FROM t", "SELECT * FROM t WHERE id > 5",
     "SELECT n FROM counted", "SELECT a.id FROM t a JOIN t b ON a.id = b.id ORDER BY a.id"],
)  # fmt: skip
async def test_what_was_short_is_read_when_it_starts(table: Path, sql: str) -> None:
    of = session({"t": files(str(table)), "counted": COUNT})
    first, was_read = await run(of, sql)
    assert not was_read
    for _ in range(2):
        assert await run(of, sql) == (first, True)


async def test_other_files_are_read_as_usual_and_measured_again(table: Path) -> None:
    of = session({"t": files(str(table))})
    await run(of, COUNT)
    assert await run(of, COUNT) == ([{"n": 3}], True)
    write(table, 4)
    assert await run(of, COUNT) == ([{"n": 4}], False)
    assert await run(of, COUNT) == ([{"n": 4}], True)
    table.unlink()
    with pytest.raises(ExecutionError, match="is missing"):
        await run(of, COUNT)


@pytest.mark.parametrize(
    "sql",
    ["SELECT id FROM t", "SELECT a.id FROM t a CROSS JOIN t b", "SELECT id FROM t LIMIT 9000"],
)
async def test_long_results_are_not_read_when_they_start(table: Path, sql: str) -> None:
    write(table, 20_000 if "JOIN" not in sql else 10)
    of = session({"t": files(str(table))})
    for _ in range(2):
        assert (await run(of, sql))[1] is False


async def test_tables_that_statements_may_change_are_not_read_when_they_start() -> None:
    system = {"task_history": lambda _viewer: pa.table({"a": [1]})}
    of = session({"t": memory(id=[1])}, system)
    for sql in ("SELECT * FROM t", "SELECT * FROM runtime.task_history", "SHOW TABLES"):
        for _ in range(2):
            assert (await run(of, sql))[1] is False


def test_only_single_local_files_stay_as_they_are(tmp_path: Path) -> None:
    tables = {
        TableName(name): files(path)
        for name, path in {"one": "/d/a.parquet", "folder": "/d/", "glob": "/d/*.parquet"}.items()
    }
    assert presence.fixed_files([], tables) == ()
    assert presence.fixed_files([TableName("one")], tables) == ("/d/a.parquet",)
    for changing in ("folder", "glob", "unknown"):
        assert presence.fixed_files([TableName("one"), TableName(changing)], tables) is None


async def test_what_fails_while_it_is_read_is_started_again(table: Path) -> None:
    of = session({"t": files(str(table))})
    await run(of, COUNT)
    made = of._statements.startable(Statement(COUNT, {}))

    class Failing:
        def __iter__(self) -> "Failing":
            return self

        def __next__(self) -> None:
            raise RuntimeError("Resources exhausted")

    streams = [Failing(), "started again"]
    stream, read = of._short.start_plan(replace(made, start=lambda: streams.pop(0)))
    assert (stream, read) == ("started again", None)
    # The next one is not expected to be short.
    assert (await run(of, COUNT))[1] is False
    assert (await run(of, COUNT))[1] is True


async def test_rows_that_became_many_are_all_passed_on(table: Path) -> None:
    """The file is another one with the same size and time, which the plan cannot know."""
    of = session({"t": files(str(table))})
    sql = "SELECT id FROM t ORDER BY id"
    await run(of, sql)
    before = table.stat()
    write(table, 20_000)
    made: Startable = of._statements.startable(Statement(sql, {}))
    short = ShortResults(lambda _facts: ())
    note = short.watch(made, made.start())
    assert note is not None
    note(1, 8, 0.001)
    stream, read = short.start_plan(made)
    assert read is not None and not read.is_whole and before.st_size != os.stat(table).st_size
    started = StartedPlan(stream, made.schema, made.plan.effect, read=read)
    whole = EngineStream(started, of._translate)
    assert whole.traits.whole is None
    ids = [row["id"] async for batch in whole for row in batch.to_pylist()]
    assert ids == list(range(20_000))


async def test_a_stream_that_is_closed_drops_the_rows_that_were_read(table: Path) -> None:
    of = session({"t": files(str(table))})
    await run(of, COUNT)
    stream = of.start(Statement(COUNT, {}))
    assert stream.traits.whole is not None and stream.traits.whole.to_pylist() == [{"n": 3}]
    await stream.aclose()
    assert stream.traits.whole is None
    assert [batch async for batch in stream] == []


@pytest.mark.parametrize(
    ("note", "is_short"), [((1, 8, 0.1), True), ((0, 0, 0.1), True), ((1, 8, 61.0), False),
                           ((2, 8, 0.1), False), ((1, 70_000, 0.1), False)]
)  # fmt: skip
async def test_short_is_one_small_batch_soon(note: tuple[int, int, float], is_short: bool) -> None:
    made = session({})._statements.startable(Statement("SELECT 1", {}))
    short = ShortResults(lambda _facts: ())
    watching = short.watch(made, made.start())
    assert watching is not None
    watching(*note)
    _, read = short.start_plan(made)
    assert (read is not None) is is_short


async def test_only_plans_without_files_are_instant(table: Path) -> None:
    of = session({"t": files(str(table)), "m": memory(id=[1])})
    for sql, is_instant in [("SELECT 1", True), (COUNT, False), ("SELECT * FROM m", False)]:
        statement = Statement(sql, {})
        seen = []
        for _ in range(3):
            seen.append(of.is_instant(statement))
            await run(of, sql)
        # The first run shows that it is short, and the second how long it takes when read at once.
        assert seen == [False, False, is_instant]
        assert not of.is_instant(replace(statement, logs={"t": ()}) if is_instant else statement)


async def test_what_takes_longer_than_a_thread_is_not_instant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of, statement = session({}), Statement("SELECT 1", {})
    for limit_s, is_instant in [(60.0, True), (0.0, False)]:
        monkeypatch.setattr(short_results, "_INSTANT_S", limit_s)
        for _ in range(2):
            await run(of, statement.sql)
        assert of.is_instant(statement) is is_instant
