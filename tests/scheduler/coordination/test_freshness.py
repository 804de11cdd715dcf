"""Statements read what any scheduler acknowledged before they started."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import StateAwayError, UnavailableError
from caraway_core.ids import TableName
from caraway_scheduler.coordination.freshness import Freshness, Mentions
from tests.kit.runtime import Running
from tests.kit.scheduler_pairs import pair
from tests.kit.turns import turn
from tests.scheduler.coordination.freshness_rounds import CHANGING, takes

A, B = TableName("a_table"), TableName("b_table")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", set()),
        ("SELECT * FROM A_Table", {A}),
        ('SELECT * FROM "caraway"."public"."a_table" JOIN b_table USING (id)', {A, B}),
        ("SELECT * FROM sums", {A}),
        ("SELECT * FROM above", {A, B}),
        ("SELECT 'a_table'", {A}),
    ],
)
def test_datasets_of_a_statement_are_found_however_they_are_written(
    sql: str, expected: set[TableName]
) -> None:
    views = {
        TableName("above"): "SELECT * FROM sums, b_table",
        TableName("sums"): "SELECT sum(x) FROM A_TABLE",
        TableName("plain"): "SELECT * FROM files",
    }
    assert Mentions([A, B], views).tables_of(sql) == expected


def test_a_name_with_quotes_is_found_as_it_is_written() -> None:
    name = TableName('say"hello')
    assert Mentions([name], {}).tables_of('SELECT * FROM "say""hello"') == {name}


class Store:
    """A store that answers when the test allows it."""

    def __init__(self) -> None:
        self.asked: list[list[TableName]] = []
        self.may_answer = asyncio.Event()
        self.reached: list[tuple[TableName, int]] = []

    async def read(self, names: Sequence[TableName]) -> list[int]:
        self.asked.append(list(names))
        number = len(self.asked)
        await self.may_answer.wait()
        return [number for _ in names]

    async def reach(self, name: TableName, revision: int) -> None:
        self.reached.append((name, revision))


def test_a_long_text_may_read_every_dataset() -> None:
    # Searching for each name takes a second in the process that serves all clients.
    mentions = Mentions([A, B], {TableName("v"): "SELECT * FROM a_table"})
    assert mentions.tables_of(f"SELECT '{'x' * 1_000}'") == set()
    assert mentions.tables_of(f"SELECT '{'x' * 1_000_000}'") == {A, B}


async def test_statements_during_a_call_share_the_next_call() -> None:
    store = Store()
    fresh = Freshness(store.read, store.reach)
    first = asyncio.ensure_future(fresh.reach(frozenset({A})))
    await turn()
    await turn()
    later = [asyncio.ensure_future(fresh.reach(frozenset({name}))) for name in (A, B, B)]
    await turn()
    store.may_answer.set()
    await asyncio.gather(first, *later)
    assert store.asked == [[A], [A, B]]
    assert store.reached[0] == (A, 1)
    assert sorted(store.reached[1:]) == [(A, 2), (B, 2), (B, 2)]
    await fresh.aclose()


async def test_the_wait_for_the_store_is_bounded() -> None:
    store = Store()
    fresh = Freshness(store.read, store.reach, wait_s=0.02)
    with pytest.raises(UnavailableError, match=r"state store did not report .* try again"):
        await fresh.reach(frozenset({A}))
    await fresh.aclose()


async def test_readers_have_longer_than_the_store() -> None:
    """A hung executor holds a new version back until it is known to be lost."""
    store = Store()
    store.may_answer.set()
    gate = asyncio.Event()

    async def slow(_name: TableName, _revision: int) -> None:
        await gate.wait()

    fresh = Freshness(store.read, slow, wait_s=0.02, in_use_s=60.0)
    loop = asyncio.get_running_loop()
    loop.call_later(0.05, gate.set)
    await fresh.reach(frozenset({A}))
    await fresh.aclose()


async def test_a_dataset_whose_readers_wait_too_long_is_named() -> None:
    async def never(_name: TableName, _revision: int) -> None:
        await asyncio.get_running_loop().create_future()

    store = Store()
    store.may_answer.set()
    fresh = Freshness(store.read, never, in_use_s=0.02)
    with pytest.raises(UnavailableError, match=r"dataset 'a_table' was not in use .* try again"):
        await fresh.reach(frozenset({A}))
    await fresh.aclose()


async def test_a_failure_is_raised_to_the_waiters_of_its_call() -> None:
    async def read(_names: Sequence[TableName]) -> list[int]:
        if fresh.calls == 1:
            raise StateAwayError("it is away")
        return [7]

    store = Store()
    fresh = Freshness(read, store.reach)
    with pytest.raises(StateAwayError, match="it is away"):
        await fresh.reach(frozenset({A}))
    await fresh.reach(frozenset({A}))
    assert store.reached == [(A, 7)]
    await fresh.aclose()


async def rows(at: Running, sql: str, **headers: str) -> Any:
    answer = await at.sql(sql, **headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def change(at: Running, id_: int, value: int, op: str = "c") -> None:
    row = {"id": id_, "v": value}
    event = {"op": op, "before": row, "after": None if op == "d" else row}
    answer = await at.api.post("/v1/datasets/orders/cdc", json=[event])
    assert answer.status_code == 200, answer.text


async def test_a_change_is_read_at_once_on_the_other_scheduler(tmp_path: Path) -> None:
    async with pair(tmp_path, CHANGING) as (one, two):
        await takes(one, two)
        total = 0
        for number in range(30):
            here, there = (one, two) if number % 2 else (two, one)
            await change(here.running, number, number)
            total += number
            # Its cached answer is older.
            for sql, expected in (
                ("SELECT sum(v) AS s FROM orders", [{"s": total}]),
                ("SELECT s FROM total", [{"s": total}]),
                (f"SELECT v FROM orders WHERE id = {number}", [{"v": number}]),
            ):
                assert await rows(there.running, sql) == expected
        await change(one.running, 3, 3, "d")
        assert await rows(two.running, "SELECT v FROM orders WHERE id = 3") == []


async def test_eventual_reads_make_no_call(tmp_path: Path) -> None:
    manifest = CHANGING.replace("runtime:\n", "runtime:\n  query: {consistency: eventual}\n")
    async with pair(tmp_path, manifest) as (one, two):
        await takes(one, two)
        await change(one.running, 1, 1)
        two.store.away = StateAwayError("the state store is away")
        assert len(await rows(two.running, "SELECT count(*) AS n FROM orders")) == 1
        two.store.away = None


async def test_without_the_state_store_statements_get_a_retryable_error(tmp_path: Path) -> None:
    async with pair(tmp_path, CHANGING) as (one, two):
        await takes(one, two)
        await change(one.running, 1, 1)
        two.store.away = StateAwayError("the state store is away")
        refused = await two.running.sql("SELECT * FROM orders")
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        # Statements without accelerated datasets do not need it.
        assert await rows(two.running, "SELECT 1 AS n") == [{"n": 1}]
        two.store.away = None
        assert await rows(two.running, "SELECT id FROM orders") == [{"id": 1}]


async def test_answers_of_tables_that_are_written_elsewhere_are_not_kept(tmp_path: Path) -> None:
    async with pair(tmp_path, CHANGING) as (one, _):
        sql = "SELECT count(*) AS n FROM notes"
        for _ in range(2):
            answer = await one.running.sql(sql)
            assert answer.json() == [{"n": 0}]
            assert "HIT" not in answer.headers.values()
