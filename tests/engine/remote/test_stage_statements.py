"""Stages that databases answer, over a cluster of two executors in this process."""

import itertools
import pickle
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutorLostError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Task
from caraway_core.tables import RemoteSplit, RemoteTable, TableSpec
from caraway_core.work import SourceQuery
from tests.kit import remote
from tests.kit.clusters import in_process_cluster
from tests.kit.engine import rows, session
from tests.kit.postgres import Server

ROWS = 20_000
FACTS = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "k": pa.array([n % 50 for n in range(ROWS)], pa.int64()),
        "v": pa.array([None if n % 9 == 0 else n for n in range(ROWS)], pa.int64()),
    }
)
GROUPS = pa.table({"k": pa.array(range(50), pa.int64()), "g": [n % 4 for n in range(50)]})
JOIN = (
    "SELECT g, count(*) AS n, sum(v) AS s FROM facts JOIN groups ON facts.k = groups.k "
    "WHERE facts.id >= 100 GROUP BY g ORDER BY g"
)


@pytest.fixture(scope="module")
def facts(postgres: Server) -> RemoteTable:
    remote.load(postgres, "stage_facts", FACTS, key="id")
    return _split(remote.resolved(postgres, "stage_facts"), "id", 5_000, 10_000, 15_000)


@pytest.fixture(scope="module")
def tables(facts: RemoteTable, postgres: Server) -> dict[str, TableSpec]:
    """Return tables of two logins, which the database does not join."""
    remote.load(postgres, "stage_groups", GROUPS, key="k")
    groups = _split(remote.resolved(postgres, "stage_groups"), "k", 25)
    login = {**groups.login, "application_name": "groups"}
    return {"facts": facts, "groups": replace(groups, login=login)}


def _split(table: RemoteTable, key: str, *edges: int) -> RemoteTable:
    """Split a table that is too small for that at its source."""
    ranges = itertools.pairwise([None, *edges, None])
    return replace(
        table, splits=tuple(RemoteSplit(key, low, high, 300_000) for low, high in ranges)
    )


def expected() -> list[dict[str, int]]:
    rows = [row for row in FACTS.to_pylist() if row["id"] >= 100]
    of = [[row for row in rows if row["k"] % 50 % 4 == group] for group in range(4)]
    return [
        {"g": group, "n": len(each), "s": sum(row["v"] or 0 for row in each)}
        for group, each in enumerate(of)
    ]


async def test_tasks_send_statements_over_key_ranges(
    tables: dict[str, TableSpec], tmp_path: Path
) -> None:
    queries: list[SourceQuery] = []

    async def noted(_executor_id: ExecutorId, task: Task) -> None:
        if isinstance(task.work, SourceQuery):
            assert task.shares == ()
            queries.append(task.work)

    with remote.watched() as sent:
        async with in_process_cluster(tmp_path, tables) as cluster:
            cluster.fleet.before = noted
            answer = await cluster.execute(JOIN)
    assert answer.to_pylist() == expected()
    # Each of two executors requests only the keys of its share of each table.
    assert sorted(each.sql for each in queries) == sorted(sent)
    facts = sorted(each.sql for each in queries if each.table == tables["facts"])
    assert len(facts) == 2 and len(sent) == 4
    assert all('"id" >= (100)::int8' in each for each in facts)
    ranges = [set(re.findall(r'\(("id" [^()]*)\)', each)) for each in facts]
    assert all(ranges) and not ranges[0] & ranges[1]


async def test_a_join_below_a_grouping_is_one_statement(
    tables: dict[str, TableSpec], facts: RemoteTable, tmp_path: Path
) -> None:
    assert isinstance(tables["groups"], RemoteTable)
    groups = replace(tables["groups"], login=facts.login)
    with remote.watched() as sent:
        async with in_process_cluster(tmp_path, {"facts": facts, "groups": groups}) as cluster:
            answer = await cluster.execute(JOIN)
            assert len(sent) == 1 and " JOIN " in sent[0] and "GROUP BY" in sent[0]
            # Without one, the executors join: each reads ranges of the tables.
            joined = await cluster.execute(JOIN.split("GROUP BY")[0].replace(
                "g, count(*) AS n, sum(v) AS s", "v, g"
            ))  # fmt: skip
    assert answer.to_pylist() == expected()
    assert joined.num_rows == sum(each["n"] for each in expected())
    assert len(sent) == 5 and not any(" JOIN " in each for each in sent[1:])


async def test_explain_shows_the_statements(tables: dict[str, TableSpec], tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path, tables) as cluster:
        text = await cluster.explain(JOIN)
        ran = await cluster.execute(f"EXPLAIN ANALYZE {JOIN}")
    assert text.count("answered_by_database: SELECT") == 4
    assert str(ran.to_pylist()).count("answered_by_database: SELECT") == 4
    assert "password" not in text


async def test_stage_that_the_database_judges_otherwise_stays_with_the_engine(
    tables: dict[str, TableSpec], tmp_path: Path
) -> None:
    sql = JOIN.replace("facts.id >= 100", "md5(arrow_cast(v, 'Utf8')) LIKE '%a%'")
    async with in_process_cluster(tmp_path, tables) as cluster:
        text = await cluster.explain(sql)
        assert [
            line for line in text.splitlines() if "answered_by" in line and "facts" in line
        ] == []
        assert sum(row["n"] for row in (await cluster.execute(sql)).to_pylist())


def test_statement_travels_without_showing_how_to_sign_in(facts: RemoteTable) -> None:
    query = SourceQuery(facts, "SELECT 1", pa.schema([("c0", pa.int64())]))
    assert pickle.loads(pickle.dumps(query)) == query
    assert "login" not in repr(query)


@pytest.mark.parametrize(
    ("sql", "answered"),
    [
        ("SELECT k, count(*) AS n FROM facts GROUP BY k ORDER BY k LIMIT 3", ["GROUP BY"]),
        (
            "SELECT f.v FROM (SELECT k, max(v) AS v FROM facts GROUP BY k) AS f "
            "JOIN groups ON f.k = groups.k",
            ["GROUP BY", "stage_groups"],
        ),
    ],
)
async def test_explain_shows_what_is_answered_of_a_whole_statement(
    tables: dict[str, TableSpec], sql: str, answered: list[str]
) -> None:
    found = await rows(session(tables), f"EXPLAIN {sql}")
    texts = [str(each["plan"]) for each in found if each["plan_type"] == "answered_by_database"]
    assert len(texts) == len(answered)
    assert all(any(part in text for text in texts) for part in answered)
    assert any("logical_plan" in str(each["plan_type"]) for each in found)


AGGREGATE = "SELECT k, count(*) AS n FROM facts WHERE id >= 100 GROUP BY k ORDER BY k LIMIT 3"


async def test_aggregate_that_the_database_answers_is_one_task_with_one_statement(
    tables: dict[str, TableSpec], tmp_path: Path
) -> None:
    works: list[object] = []

    async def noted(_executor_id: ExecutorId, task: Task) -> None:
        works.append(task.work)

    with remote.watched() as sent:
        async with in_process_cluster(tmp_path, tables) as cluster:
            cluster.fleet.before = noted
            answer = await cluster.execute(AGGREGATE)
            repeated = await cluster.execute(AGGREGATE)
            text = await cluster.explain(AGGREGATE)
            ran = str((await cluster.execute(f"EXPLAIN ANALYZE {AGGREGATE}")).to_pylist())
    assert answer.to_pylist() == [{"k": k, "n": 398} for k in range(3)]
    assert repeated == answer
    (query,) = {each.sql for each in works if isinstance(each, SourceQuery)}
    assert "GROUP BY" in query and sent == [query] * 3
    assert f"answered_by_database: {query}" in text and "1 task" in text
    assert f"answered_by_database: {query}" in ran and "3 rows" in ran


async def test_aggregate_moves_when_its_executor_is_lost(
    tables: dict[str, TableSpec], tmp_path: Path
) -> None:
    lost: list[ExecutorId] = []

    async def lose_once(executor_id: ExecutorId, _task: Task) -> None:
        if not lost:
            lost.append(executor_id)
            raise ExecutorLostError(executor_id, "it was killed")

    async with in_process_cluster(tmp_path, tables) as cluster:
        cluster.fleet.before = lose_once
        answer = await cluster.execute(AGGREGATE)
    assert lost and answer["n"].to_pylist() == [398] * 3


@pytest.mark.parametrize("words", ["EXPLAIN", "EXPLAIN ANALYZE", "EXPLAIN ANALYZE VERBOSE"])
async def test_explain_shows_the_statement_of_a_scan(
    tables: dict[str, TableSpec], words: str
) -> None:
    inner = "SELECT max(v) FROM facts WHERE k <= id AND id < 5"
    sql = f"SELECT v FROM facts WHERE id < 5 AND v IN ({inner})"
    with remote.watched() as sent:
        found = await rows(session(tables), f"{words} {sql}")
    texts = [str(each["plan"]) for each in found if each["plan_type"] == "answered_by_database"]
    assert texts and all(each.startswith("SELECT") for each in texts)
    assert sorted(set(sent)) == (sorted(texts) if "ANALYZE" in words else [])
