import asyncio
import os
import signal
import time

import pyarrow as pa
import pytest

from caraway_core import suspects
from caraway_core.errors import (
    AnswerCutError,
    ExecutionError,
    InvalidQueryError,
    OutOfMemoryQueryError,
    QueryTimeoutError,
    StatementRefusedError,
)
from caraway_core.ids import PrincipalId, TableName
from caraway_executor.engines import shared_memory, trials, watching
from caraway_executor.engines.causes import Cause
from tests.kit import sql_texts
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, snapshot
from tests.kit.engine_pools import (
    ENDLESS,
    HUGE,
    PRODUCT,
    are_none_of,
    are_processes,
    be_patient,
    engines,
    has_work,
    is_gone,
    opened,
    read,
    rows,
    stop,
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


async def test_statements_run_in_another_process() -> None:
    async with engines() as made:
        found = await rows(made, "SELECT sum(n) + $1 AS n FROM t", parameters={"1": 10})
        assert found == [{"n": 16}]
        with pytest.raises(InvalidQueryError, match="nope"):
            await rows(made, "SELECT nope FROM t")
        (process,) = made.processes
        assert process.pid != os.getpid() and not process.works


async def test_long_answers_come_as_they_are_read() -> None:
    async with engines() as made:
        stream = await opened(made, "SELECT n FROM big")
        found = [batch async for batch in stream]
        assert sum(batch.num_rows for batch in found) == 100_000
        assert not made.processes[0].works


async def test_rows_cross_where_no_memory_can_be_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(shared_memory, "create", refused)
    async with engines() as made:
        stream = await opened(made, "SELECT n FROM big")
        assert sum([batch.num_rows async for batch in stream]) == 100_000


async def test_system_tables_show_what_the_viewer_may_see() -> None:
    def seen(viewer: PrincipalId | None) -> pa.Table:
        return pa.table({"viewer": [str(viewer)]})

    async with engines(snapshot({}, {"tasks": seen})) as made:
        found = await rows(made, "SELECT * FROM runtime.tasks", viewer=PrincipalId("ada"))
        assert found == [{"viewer": "ada"}]


async def test_system_table_that_fails_is_an_error_of_the_statement() -> None:
    def fails(_viewer: PrincipalId | None) -> pa.Table:
        raise RuntimeError("secret")

    async with engines(snapshot({}, {"tasks": fails})) as made:
        with pytest.raises(ExecutionError, match=r"runtime\.tasks") as told:
            await rows(made, "SELECT * FROM runtime.tasks")
        assert "secret" not in told.value.message


async def test_statement_is_run_again_when_its_engine_ends_before_its_rows() -> None:
    async with engines() as made:
        # It takes longer than an engine waits for the end before it says that a result has begun.
        slow = "SELECT sum(a.n) AS n FROM big a JOIN big b ON a.n % 250 = b.n % 250"
        stream = await opened(made, slow)
        made.processes[0].kill(Cause.CRASH)
        assert await read(stream) == [{"n": 400 * sum(range(100_000))}]
        assert made.restarts == {Cause.CRASH: 1}
        # It came to its end, so that it is suspected no more.
        assert len(made.suspects) == 0


@pytest.mark.parametrize("ends", [False, True], ids=["at once", "run again"])
async def test_strings_stay_plain_for_a_reader_that_asks_for_it(ends: bool) -> None:
    # It takes longer than an engine waits for the end before it says that a result has begun.
    text = (
        "SELECT arrow_cast('a' || max(a.n), 'Utf8View') AS s "
        "FROM big a JOIN big b ON a.n % 250 = b.n % 250"
    )
    async with engines() as made:
        stream = await opened(made, text)
        stream.traits.takes_plain = True
        if ends:
            made.processes[0].kill(Cause.CRASH)
        [batch] = [batch async for batch in stream]
        assert stream.schema.field("s").type == pa.string_view()
        assert batch.schema.field("s").type == pa.string()
        assert batch.to_pylist() == [{"s": "a99999"}]


async def test_statement_whose_rows_were_read_is_cut_off() -> None:
    async with engines() as made:
        batches = aiter(await opened(made, "SELECT n FROM big a ORDER BY n"))
        await anext(batches)
        made.processes[0].kill(Cause.CRASH)
        with pytest.raises(AnswerCutError, match="run the statement again"):
            async for _ in batches:
                pass


async def test_waiting_statements_do_not_see_that_their_engine_ends() -> None:
    async with engines() as made:
        asking = [
            asyncio.create_task(rows(made, f"SELECT count(*) + {n} AS n FROM big"))
            for n in range(8)
        ]
        await asyncio.sleep(0)
        os.kill(made.processes[0].pid, signal.SIGKILL)
        assert await asyncio.gather(*asking) == [[{"n": 100_000 + n}] for n in range(8)]


async def test_statement_that_fills_the_memory_ends_with_its_own_error_only() -> None:
    async with engines() as made:
        pid = made.processes[0].pid
        with pytest.raises(OutOfMemoryQueryError, match="is allowed"):
            await rows(made, HUGE)
        # Where the main process was found silent before it was full, it has ended one only.
        with pytest.raises((OutOfMemoryQueryError, StatementRefusedError)):
            await rows(made, HUGE)
        assert await rows(made, "SELECT 1 AS n") == [{"n": 1}]
        # A silent one rests meanwhile, and is ended for its size a little later; each of the two
        # statements can have met one.
        await eventually(lambda: are_none_of(made, {pid}), "the main process was replaced")
        ends = made.restarts[Cause.MEMORY]
        assert ends in (2, 3, 4)
        with pytest.raises(StatementRefusedError, match="ended the engine twice: memory"):
            await rows(made, HUGE)
        assert made.restarts[Cause.MEMORY] == ends


async def test_product_runs_apart_and_its_end_hurts_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_CALM_S", 0.2)
    # Some joins go on for minutes and others do not; this one does.
    monkeypatch.setattr(watching, "wanted_s", lambda _pid: time.monotonic())
    async with engines() as made:
        (main,) = made.processes
        assert await rows(made, PRODUCT) == [{"count(*)": 18}]
        _, apart = made.processes
        endless = asyncio.create_task(rows(made, ENDLESS))
        await eventually(lambda: has_work(apart), "the product runs apart")
        endless.cancel()
        await eventually(lambda: is_gone(apart.pid), "the process of the product is gone")
        await eventually(lambda: are_processes(made, [main]), "only the main process is left")
        assert await rows(made, PRODUCT) == [{"count(*)": 18}]


async def test_rows_of_tables_in_memory_outlive_their_engine() -> None:
    async with engines() as made:
        writable = frozenset({TableName("t")})
        await rows(made, "INSERT INTO t VALUES (4)", may_write=True, writable=writable)
        # The process apart has them, too.
        assert await rows(made, "SELECT count(*) AS n FROM t a, t b") == [{"n": 16}]
        made.processes[0].kill(Cause.CRASH)
        await rows(made, "INSERT INTO t VALUES (5)", may_write=True, writable=writable)
        assert await rows(made, "SELECT sum(n) AS n FROM t") == [{"n": 15}]
        assert await rows(made, "SELECT count(*) AS n FROM t a, t b") == [{"n": 25}]


async def test_statement_that_writes_is_not_run_twice() -> None:
    async with engines() as made:
        writable = frozenset({TableName("t")})
        sql = "INSERT INTO t SELECT n FROM big"
        stream = await opened(made, sql, may_write=True, writable=writable)
        made.processes[0].kill(Cause.CRASH)
        with pytest.raises(ExecutionError, match="look before you run it again"):
            await read(stream)
        assert await rows(made, "SELECT count(*) AS n FROM t") == [{"n": 3}]


async def test_catalog_is_that_of_the_last_install() -> None:
    async with engines() as made:
        await made.install(snapshot({"t": memory(n=[7]), "v": "SELECT n FROM t"}, version=2))
        assert await rows(made, "SELECT n FROM v") == [{"n": 7}]
        assert made.views[TableName("v")].reads == {TableName("t")}
        made.processes[0].kill(Cause.CRASH)
        assert await rows(made, "SELECT n FROM v") == [{"n": 7}]
        assert await made.install(snapshot({"w": "SELECT nope"}, version=3)) != {}


async def test_statements_that_wait_are_not_blamed_for_the_end_of_an_engine() -> None:
    async with engines() as made:
        stuck = made.processes[0]
        await stop(stuck)
        waiting = [asyncio.create_task(rows(made, f"SELECT {n} AS n")) for n in range(4)]
        await eventually(lambda: has_work(stuck), "the statements are sent")
        stuck.kill(Cause.MEMORY, "it was too large")
        assert await asyncio.gather(*waiting) == [[{"n": n}] for n in range(4)]
        assert len(made.suspects) == 0
        # They ran in the next process; none had to run on trial.
        assert [each.engine for each in made.report().processes] == ["main"]


async def test_planning_that_does_not_end_is_refused_and_hurts_nobody() -> None:
    async with engines(planning_timeout_s=0.3) as made:
        for _ in range(2):
            with pytest.raises(QueryTimeoutError, match=r"not planned within 0\.3 s"):
                await rows(made, sql_texts.planned_for_long("SELECT n AS a FROM t"))
            assert await rows(made, "SELECT sum(n) AS n FROM t") == [{"n": 6}]


async def test_statement_that_plans_for_long_runs_apart_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trials, "_LONG_S", 60.0)
    async with engines() as made:
        (main,) = made.processes
        long, key = "SELECT 5 AS n", suspects.key("SELECT 5 AS n")
        made.long_planning.took(key, 61.0)
        await stop(main)
        assert await rows(made, long) == [{"n": 5}]
        # It took less time, so it runs with others again; and the process was not tested for life.
        assert key not in made.long_planning and not main.is_silent
        os.kill(main.pid, signal.SIGCONT)
