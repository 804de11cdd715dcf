"""Queries over an in-process cluster from end to end, with and without failures."""

import asyncio
import itertools
import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import (
    CatalogMovedError,
    InvalidQueryError,
    NotDistributableError,
    OutOfMemoryQueryError,
    QueryCancelledError,
)
from caraway_core.ids import ExecutorId, TableName, new_query_id
from caraway_core.protocols.fleet import Task
from caraway_core.statements import Statement
from caraway_core.tables import CsvDialect, FileScan, FilesTable, TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions.sessions import Session
from caraway_engine.stages import Policy
from tests.kit.clusters import EAGER, InProcessCluster, in_process_cluster
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, snapshot
from tests.kit.faults import nothing
from tests.kit.tables import parquet
from tests.scheduler.dispatch.clustered import E1, E2, E3, JOIN, ROWS, expected, on_three


@on_three
async def test_a_query_runs_in_stages_on_all_executors(cluster: InProcessCluster) -> None:
    assert (await cluster.execute(JOIN)).to_pylist() == expected()

    assert set(cluster.tallies.assignments) == {("e1",), ("e2",), ("e3",)}


async def test_a_small_statement_runs_whole_on_the_least_busy_executor(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with in_process_cluster(tmp_path, tables, policy=Policy()) as cluster:
        assert (await cluster.execute(JOIN)).to_pylist() == expected()
        assert sum(cluster.tallies.assignments.values()) == 1
        assert "what it reads is small" in await cluster.explain(JOIN)


@on_three
async def test_a_statement_keeps_its_catalog_however_many_follow(
    cluster: InProcessCluster, tables: dict[str, TableSpec]
) -> None:
    versions, one_at_a_time = iter(range(2, 12)), asyncio.Lock()

    async def flip(_executor_id: ExecutorId, _task: Task) -> None:
        async with one_at_a_time:
            for version in itertools.islice(versions, 4):
                more = memory(k=[version], g=[version])
                made = snapshot({**tables, "more": more}, version=version)
                assert not await cluster.install(made)

    cluster.fleet.before = flip
    assert (await cluster.execute(JOIN)).to_pylist() == expected()
    cluster.fleet.before = nothing
    assert not list(versions), "the catalog moved ten times meanwhile"

    async def is_released() -> bool:
        return {len(cluster.fleet.kept(each)) for each in (E1, E2, E3)} == {1}

    await eventually(is_released, "what nobody needs is let go")


@on_three
async def test_a_whole_statement_reads_the_catalog_that_it_was_planned_over(
    cluster: InProcessCluster, tables: dict[str, TableSpec]
) -> None:
    sql = "SELECT count(*) AS n FROM more WHERE k NOT IN (SELECT k + NULL FROM facts)"
    stream = await cluster.dispatch.execute(new_query_id(), Statement(sql, {}))
    for version in range(2, 8):
        assert not await cluster.install(snapshot(tables, version=version))
    assert [batch.to_pylist() async for batch in stream] == [[{"n": 0}]]


@on_three
async def test_a_catalog_that_no_executor_has_is_planned_over_the_next_one(
    cluster: InProcessCluster, tables: dict[str, TableSpec]
) -> None:
    installs: list[asyncio.Future[Mapping[TableName, str]]] = []

    async def moved(_executor_id: ExecutorId, task: Task) -> None:
        if task.catalog_version == 1:
            if not installs:
                next_one = cluster.install(snapshot(tables, version=2))
                installs.append(asyncio.ensure_future(next_one))
            raise CatalogMovedError(task.catalog_version)

    cluster.fleet.before = moved
    assert (await cluster.execute(JOIN)).to_pylist() == expected()
    assert [await each for each in installs] == [{}]


@on_three
async def test_statements_without_tables_run_on_the_scheduler(cluster: InProcessCluster) -> None:
    assert (await cluster.execute("SELECT 1 AS a")).to_pylist() == [{"a": 1}]
    assert not cluster.tallies.assignments


@on_three
async def test_explain_shows_the_stages_and_where_they_run(cluster: InProcessCluster) -> None:
    text = await cluster.explain(JOIN)

    assert "answer: answer: 1 task" in text
    assert "one side of a hash join: 3 tasks on e1, e2, e3" in text
    assert "reads its share of facts" in text
    assert "partitions its rows by the hash of c0" in text


@on_three
async def test_explain_analyze_adds_rows_bytes_and_time(cluster: InProcessCluster) -> None:
    text = await cluster.explain("ANALYZE " + JOIN)

    assert "  11 rows" in text
    assert "task 0 on e1: " in text
    assert " ms" in text


@on_three
async def test_explain_says_why_a_statement_runs_whole(cluster: InProcessCluster) -> None:
    sql = "SELECT * FROM facts WHERE k NOT IN (SELECT k + NULL FROM more)"

    assert "null_aware" in await cluster.explain(sql)


@on_three
async def test_closing_an_answer_stops_the_work_behind_it(cluster: InProcessCluster) -> None:
    sql = "SELECT a.v FROM facts a JOIN facts b ON a.k = b.k"
    stream = await cluster.dispatch.execute(new_query_id(), Statement(sql, {}))
    await anext(aiter(stream))

    await stream.aclose()

    async def idle() -> bool:
        return all(not each.active_tasks for each in await cluster.fleet.describe())

    assert await eventually(idle, "all work has stopped")


@on_three
async def test_cancelling_a_query_stops_its_tasks(cluster: InProcessCluster) -> None:
    reached = asyncio.Event()

    async def hold(_executor_id: ExecutorId, _task: Task) -> None:
        reached.set()
        await asyncio.Event().wait()

    cluster.fleet.before = hold
    query = asyncio.ensure_future(cluster.execute(JOIN))
    await asyncio.wait_for(reached.wait(), 60)

    query.cancel()

    with pytest.raises((asyncio.CancelledError, QueryCancelledError)):
        await query


@on_three
async def test_a_query_keeps_the_catalog_it_was_planned_with(
    cluster: InProcessCluster, tables: dict[str, TableSpec]
) -> None:
    async def reload(_executor_id: ExecutorId, task: Task) -> None:
        if task.stage == "s3":
            cluster.fleet.before = HELD
            only = {TableName("kept"): tables["kept"]}
            await cluster.install(snapshot({str(k): v for k, v in only.items()}, version=2))

    async def held(_executor_id: ExecutorId, _task: Task) -> None:
        return

    HELD = held
    cluster.fleet.before = reload

    assert (await cluster.execute(JOIN)).to_pylist() == expected()
    with pytest.raises(InvalidQueryError, match="facts"):
        await cluster.execute(JOIN)


@on_three
async def test_tables_in_memory_have_one_owner_and_take_rows(cluster: InProcessCluster) -> None:
    writable = frozenset({TableName("kept")})
    insert = Statement("INSERT INTO kept VALUES (3)", {}, may_write=True, writable=writable)

    stream = await cluster.dispatch.execute(new_query_id(), insert)
    [batch async for batch in stream]

    assert stream.written == "kept"
    for _ in range(3):
        assert (await cluster.execute("SELECT sum(a) AS s FROM kept")).to_pylist() == [{"s": 6}]


@on_three
async def test_rows_in_memory_outlive_a_change_of_the_catalog(
    cluster: InProcessCluster, tables: dict[str, TableSpec]
) -> None:
    writable = frozenset({TableName("kept")})
    insert = Statement("INSERT INTO kept VALUES (3)", {}, may_write=True, writable=writable)
    stream = await cluster.dispatch.execute(new_query_id(), insert)
    [batch async for batch in stream]

    await cluster.install(snapshot(tables, version=2))

    assert (await cluster.execute("SELECT sum(a) AS s FROM kept")).to_pylist() == [{"s": 6}]


@on_three
async def test_many_queries_at_once_are_all_answered(cluster: InProcessCluster) -> None:
    answers = await asyncio.gather(*(cluster.execute(JOIN) for _ in range(50)))

    assert all(answer.to_pylist() == expected() for answer in answers)


async def test_tables_over_the_same_files_are_not_mixed_up(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    twice = {**tables, "again": tables["facts"]}
    async with in_process_cluster(tmp_path, twice, policy=EAGER) as cluster:
        answer = await cluster.execute(
            "SELECT count(*) AS n FROM facts JOIN again ON facts.v = again.v"
        )

    assert answer.to_pylist() == [{"n": ROWS}]


@on_three
async def test_tables_that_cannot_be_shared_out_after_all_are_read_whole(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "pieces", lambda _session, _table: None)

    assert (await cluster.execute(JOIN)).to_pylist() == expected()

    assert sum(cluster.tallies.assignments.values()) == 1
    assert "cannot be divided" in await cluster.explain(f"ANALYZE {JOIN}")


async def test_table_whose_nulls_a_regex_tells_is_read_whole_on_an_executor(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    schema = pa.schema([("k", pa.int64()), ("word", pa.string())])
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("k,word\n1,a\n2,NA\n")
    paths = tuple(sorted(map(str, tmp_path.glob("*.csv"))))
    dialect = CsvDialect(null_regex="^NA$")
    scan = FileScan("csv", paths, schema, ".csv", csv=dialect, size_bytes=100, file_count=3)
    sql = "SELECT k, count(word) AS words FROM texts GROUP BY k ORDER BY k"
    texts = {**tables, "texts": FilesTable(schema, (scan,))}
    async with in_process_cluster(tmp_path, texts, policy=EAGER) as cluster:
        answer = (await cluster.execute(sql)).to_pylist()
        assert answer == [{"k": 1, "words": 3}, {"k": 2, "words": 0}]
        assert sum(cluster.tallies.assignments.values()) == 1


@on_three
async def test_explain_analyze_profiles_each_task_and_other_statements_do_not(
    cluster: InProcessCluster,
) -> None:
    asked: list[bool] = []

    async def note(_executor_id: ExecutorId, task: Task) -> None:
        asked.append(task.is_profiled)

    cluster.fleet.before = note
    rows = await cluster.execute(f"EXPLAIN ANALYZE VERBOSE {JOIN}")
    texts = {row["plan_type"]: row["plan"] for row in rows.to_pylist()}
    found = json.loads(texts["profile"])
    tasks = [each for stage in found["stages"] for each in stage["tasks"]]
    assert len(tasks) >= len(asked) > 3 and all(asked)
    profiled = [each for each in tasks if "operators" in each]
    assert len(profiled) >= len(asked)
    read = sum(
        each["metrics"].get("output_rows", 0)
        for task in profiled
        for each in task["operators"]
        if each["operator"].startswith("DataSourceExec: file_groups")
    )
    assert read == ROWS + 900, "each row is read once"
    assert found["stages"][-1]["tasks"][-1]["rows"] == len(expected())
    assert "planning" in texts["distributed_plan_with_metrics"]

    asked.clear()
    await cluster.execute(JOIN)
    assert asked and not any(asked)


@on_three
async def test_explain_analyze_reads_the_rows_in_memory_at_their_owner(
    cluster: InProcessCluster,
) -> None:
    writable = frozenset({TableName("kept")})
    insert = Statement("INSERT INTO kept VALUES (3)", {}, may_write=True, writable=writable)
    stream = await cluster.dispatch.execute(new_query_id(), insert)
    [batch async for batch in stream]

    # The owner is busy, so a statement that can run anywhere would run elsewhere.
    held = await cluster.dispatch.execute(new_query_id(), Statement("SELECT a FROM kept", {}))
    rows = await cluster.execute("EXPLAIN ANALYZE SELECT a FROM kept WHERE a > 2")
    await held.aclose()
    assert "output_rows=1" in str(rows.to_pylist()[0]["plan"])


async def test_a_sort_of_more_than_executors_may_pass_on_runs_whole_and_spills(
    tmp_path: Path,
) -> None:
    count = 200_000
    numbers = [(number * 7919) % count for number in range(count)]
    rows = pa.table({"k": numbers, "s": [f"{number:012d}{'x' * 90}" for number in numbers]})
    tables = {"t": parquet(tmp_path / "t", rows, 4)}
    # Each of the two would send 11 MB.
    settings = EngineSettings(2, 8 * 1024 * 1024, tmp_path / "spilled")
    async with in_process_cluster(tmp_path, tables, settings=settings) as cluster:
        found = await cluster.execute("SELECT k, s FROM t ORDER BY s")
        assert found["k"].to_pylist() == list(range(count))
        with pytest.raises(OutOfMemoryQueryError, match=r"query\.memory_limit"):
            await cluster.execute("SELECT count(*) FROM t a FULL JOIN t b ON a.s = b.s")
        # The executors keep running.
        assert (await cluster.execute("SELECT max(k) FROM t")).column(0).to_pylist() == [count - 1]


@on_three
@pytest.mark.parametrize("count", [22, 23, 40])
async def test_joins_of_many_tables_are_answered(cluster: InProcessCluster, count: int) -> None:
    # A message of protobuf has at most 100 levels, which about 22 joins reach.
    joins = " ".join(f"JOIN more d{n} ON d{n}.k = facts.k" for n in range(1, count))
    answer = await cluster.execute(f"SELECT count(*) AS n FROM facts {joins}")
    one = await cluster.execute("SELECT count(*) AS n FROM facts JOIN more ON more.k = facts.k")
    assert answer == one


@on_three
async def test_a_statement_runs_whole_whichever_of_its_tasks_cannot_be_divided(
    cluster: InProcessCluster,
) -> None:
    joins = ("LEFT", "RIGHT", "FULL")
    sql = " UNION ".join(
        f"SELECT f.v AS a, m.g AS b FROM facts f {join} JOIN more m ON f.k = m.k % 500"
        for join in joins
    )
    asked, refused, tasks = itertools.count(), -1, 0

    async def refuse(_executor_id: ExecutorId, _task: Task) -> None:
        nonlocal tasks
        number = next(asked)
        tasks = max(tasks, number + 1)
        if number == refused:
            raise NotDistributableError("the files of a dataset cannot be divided: for the test")

    cluster.fleet.before = refuse
    order = [("a", "ascending"), ("b", "ascending")]
    expected = (await cluster.execute(sql)).sort_by(order)
    assert tasks > len(joins)
    for refused in (0, tasks // 2, tasks - 1):
        asked = itertools.count()
        assert (await cluster.execute(sql)).sort_by(order) == expected, refused
