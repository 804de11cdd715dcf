import asyncio
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_engine.sessions.sessions import Session
from caraway_engine.stages.inputs import INPUT_PREFIX
from tests.engine.stages.fragment_rows import tuples
from tests.kit.engine import memory, rows, session
from tests.kit.fragments import rows_of, task

ORDERS = pa.table({"id": [1, 2, 3], "who": [10, 20, None]})
PEOPLE = pa.table({"id": [10, 20], "name": ["Ann", "Bob"]})


async def answer(of: Session, run: Task, inputs: Sequence[TaskTable] = ()) -> list[Any]:
    batches = [batch async for batch in of.run_task(run, inputs)]
    return sorted((row for batch in batches for row in tuples(batch)), key=repr)


async def test_fragment_joins_a_table_of_the_catalog_with_an_input() -> None:
    made = session({"orders": memory(**{n: ORDERS[n] for n in ORDERS.column_names})})
    sql = "SELECT o.id, p.name FROM orders o LEFT JOIN $people p ON o.who = p.id"
    run = task(sql, {"orders": ORDERS.schema, "$people": PEOPLE.schema})
    found = await answer(made, run, [rows_of("people", PEOPLE.slice(0, 1), PEOPLE.slice(1))])
    assert found == [(1, "Ann"), (2, "Bob"), (3, None)]


async def test_input_without_rows_is_an_empty_table() -> None:
    run = task("SELECT count(*) AS n, max(id) AS m FROM $people", {"$people": PEOPLE.schema})
    bare = TaskTable(INPUT_PREFIX + "people", PEOPLE.schema, ())
    assert await answer(session({}), run, [bare]) == [(0, None)]


async def test_fragment_may_read_one_input_twice_and_repeat_columns() -> None:
    sql = "SELECT a.id, a.id AS again, b.id AS other FROM $p a JOIN $p b ON a.id = b.id"
    run = task(sql, {"$p": PEOPLE.schema})
    found = await answer(session({}), run, [rows_of("p", PEOPLE)])
    assert found == [(10, 10, 10), (20, 20, 20)]


async def test_text_that_holds_the_prefix_stays_as_it_is() -> None:
    sql = f"SELECT '{INPUT_PREFIX}' AS text, id FROM $p"
    found = await answer(session({}), task(sql, {"$p": PEOPLE.schema}), [rows_of("p", PEOPLE)])
    assert found == [(INPUT_PREFIX, 10), (INPUT_PREFIX, 20)]


async def test_fragments_that_run_at_once_read_their_own_inputs() -> None:
    made = session({})
    run = task("SELECT sum(v) AS s FROM $x", {"$x": pa.schema([("v", pa.int64())])})

    async def one(number: int) -> None:
        table = pa.table({"v": [number] * 100})
        stream = await asyncio.to_thread(made.run_task, run, [rows_of("x", table)])
        found = [batch.column(0).to_pylist() async for batch in stream]
        assert found == [[number * 100]]

    await asyncio.gather(*(one(number) for number in range(64)))


async def test_statements_neither_see_nor_list_inputs() -> None:
    made = session({"exchange.mine": memory(a=[1])})
    table = pa.table({"v": [1]})
    stream = made.run_task(task("SELECT v FROM $x", {"$x": table.schema}), [rows_of("x", table)])
    listed = await rows(
        made,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'exchange'",
    )
    assert listed == [{"table_name": "mine"}]
    assert await rows(made, "SELECT a FROM exchange.mine") == [{"a": 1}]
    assert [batch.to_pylist() async for batch in stream] == [[{"v": 1}]]


def test_types_other_than_the_task_says_are_refused() -> None:
    run = task("SELECT id FROM $p", {"$p": PEOPLE.schema}, schema=pa.schema([("c0", pa.int32())]))
    with pytest.raises(ExecutionError, match=r"\(int64\) where the plan says \(int32\)"):
        session({}).run_task(run, [rows_of("p", PEOPLE)])


def test_input_of_other_types_than_its_schema_is_refused() -> None:
    run = task("SELECT id FROM $p", {"$p": PEOPLE.schema})
    wrong = TaskTable(INPUT_PREFIX + "p", PEOPLE.schema, (PEOPLE.select(["name", "id"]),))
    with pytest.raises(ExecutionError, match="bug in the planner"):
        session({}).run_task(run, [wrong])


def test_table_that_is_not_in_the_catalog_is_named() -> None:
    run = task("SELECT id FROM people", {"people": PEOPLE.schema})
    with pytest.raises(InvalidQueryError, match="people"):
        session({}).run_task(run, ())


async def test_fields_of_null_structs_are_null_in_inputs() -> None:
    given = pa.table({"id": [1, 2], "s": pa.array([{"a": 1}, None])})
    run = task("SELECT id, s['a'] AS a FROM $p", {"$p": given.schema})
    assert await answer(session({}), run, [rows_of("p", given)]) == [(1, 1), (2, None)]
