"""Two merges at once have the answer of one after the other, or one of them fails."""

import asyncio
from typing import Any

import pyarrow as pa

from caraway_core.errors import QueryError
from caraway_core.tables import MemoryTable
from caraway_engine.sessions.sessions import Session
from tests.conformance.written_databases import (
    Kind,
    connector,
    create,
    kind,
    mariadb_server,
    of,
    write,
)
from tests.kit.engine import rows

__all__ = ["connector", "kind", "mariadb_server"]
ROUNDS = 8
MERGE = (
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.n < 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT (id, n, v) VALUES (s.id, s.n, s.v)"
)
Rows = dict[int, str]


def source(first: int, last: int, text: str) -> pa.Table:
    """Return rows of which each seventh is deleted where the table has it."""
    ids = list(range(first, last))
    signs = [-1 if each % 7 == 0 else 1 for each in ids]
    return pa.table({"id": ids, "n": signs, "v": [text] * len(ids)})


def merged(before: Rows, given: pa.Table) -> Rows:
    """Return what a merge leaves."""
    after = dict(before)
    for row in given.to_pylist():
        if row["id"] in before and row["n"] < 0:
            del after[row["id"]]
        else:
            after[row["id"]] = row["v"]
    return after


async def tried(over: Session, sql: str = MERGE) -> int | QueryError:
    try:
        return await write(over, sql)
    except QueryError as exc:
        return exc


async def test_two_at_once_are_one_after_the_other(kind: Kind) -> None:
    one, other = source(0, 60, "one"), source(30, 90, "other")
    before: Rows = dict.fromkeys(range(20, 50), "old")
    outcomes: list[Any] = []
    for _ in range(ROUNDS):
        # Without a key of the table, nothing but the merge keeps a row from being there twice.
        create(kind, "t", "id BIGINT, n INTEGER, v VARCHAR(5)")
        values = ", ".join(f"({each}, 0, 'old')" for each in before)
        kind.run(f"INSERT INTO t VALUES {values}")
        sessions = [of(kind, "t", s=MemoryTable(each.schema, each)) for each in (one, other)]
        done = await asyncio.gather(*map(tried, sessions))
        listed = await rows(sessions[0], "SELECT id, v FROM t ORDER BY id")
        after = {each["id"]: each["v"] for each in listed}
        assert len(after) == len(listed), "a key is there twice"
        is_done = [not isinstance(each, QueryError) for each in done]
        allowed = {
            (True, True): [merged(merged(before, one), other), merged(merged(before, other), one)],
            (True, False): [merged(before, one)],
            (False, True): [merged(before, other)],
            (False, False): [before],
        }[is_done[0], is_done[1]]
        assert after in allowed
        for each in done:
            if isinstance(each, QueryError):
                assert "no row was changed" in each.message, each.message
                assert "hunter2" not in each.message
        outcomes.append(is_done)
    assert any(any(each) for each in outcomes), outcomes


async def test_sums_of_two_at_once_are_whole(kind: Kind) -> None:
    sql = (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.n >= 0 THEN UPDATE "
        "SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
    )
    given = [pa.table({"id": list(range(40)), "n": [n] * 40}) for n in (1, 10)]
    for _ in range(ROUNDS):
        create(kind, "t", "id BIGINT PRIMARY KEY, n INTEGER, v VARCHAR(5)")
        kind.run(f"INSERT INTO t VALUES {', '.join(f'({each}, 0, NULL)' for each in range(20))}")
        sessions = [of(kind, "t", s=MemoryTable(each.schema, each)) for each in given]
        done = await asyncio.gather(*(tried(each, sql) for each in sessions))
        total = sum(
            n for n, each in zip((1, 10), done, strict=True) if not isinstance(each, QueryError)
        )
        found = await rows(sessions[0], "SELECT id, n FROM t ORDER BY id")
        expected = dict.fromkeys(range(40 if total else 20), total)
        assert {each["id"]: each["n"] for each in found} == expected, done
        for each in done:
            if isinstance(each, QueryError):
                assert "no row was changed" in each.message, each.message
