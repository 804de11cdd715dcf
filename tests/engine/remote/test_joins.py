"""Joins of tables of one database: what is sent as one statement, and what is not."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.tables import MemoryTable, RemoteTable
from caraway_engine.sessions.sessions import Session
from tests.kit import remote
from tests.kit.engine import memory, rows, session
from tests.kit.postgres import Server

ORDERS = pa.table(
    {
        "id": pa.array(range(60), pa.int64()),
        "customer": pa.array([None if n % 7 == 0 else n % 9 for n in range(60)], pa.int32()),
        "code": [f"{'K' if n % 2 else 'k'}{n % 4}" if n % 5 else None for n in range(60)],
        "price": pa.array([Decimal(n) / 4 for n in range(60)], pa.decimal128(12, 2)),
        "weight": [n * 0.5 for n in range(60)],
    }
)
CUSTOMERS = pa.table(
    {
        "id": pa.array([*range(6), 6, 6], pa.int64()),
        "code": ["k0", "K1", "k2", "K3", None, "", "k0 ", "é"],
        "weight": [0.0, 1.5, 2.0, float("nan"), -0.0, 4.0, 5.0, None],
        "side0": ["a", "b", "c", "d", "e", "f", None, "h"],
        'column0" --': pa.array(range(8), pa.int16()),
    }
)
TABLES = {"o": ORDERS, "c": CUSTOMERS}
WEIRD = 'Select "x"; DROP TABLE o; --\''


@pytest.fixture(scope="module")
def tables(postgres: Server) -> dict[str, RemoteTable]:
    remote.load(postgres, "o", ORDERS, "id")
    remote.load(postgres, WEIRD, CUSTOMERS)
    weird = remote.quoted(WEIRD)
    postgres.execute(
        f'ALTER TABLE {weird} ALTER COLUMN code TYPE text COLLATE "C"',
        'ALTER TABLE o ALTER COLUMN code TYPE text COLLATE "POSIX"',
    )
    return {"o": remote.resolved(postgres, "o"), "c": remote.resolved(postgres, WEIRD)}


@pytest.fixture(scope="module")
def over(tables: dict[str, RemoteTable]) -> Session:
    return session({**tables, "m": memory(k=[1, 2, 3])})


@pytest.fixture(scope="module")
def reference() -> Session:
    kept = {name: MemoryTable(each.schema, each) for name, each in TABLES.items()}
    return session({**kept, "m": memory(k=[1, 2, 3])})


@pytest.fixture
def sent() -> Iterator[list[str]]:
    with remote.watched() as statements:
        yield statements


ONE = [
    "SELECT o.id, c.id, c.side0 FROM o JOIN c ON o.customer = c.id",
    "SELECT o.id, c.\"column0\"\" --\" FROM o LEFT JOIN c ON o.customer = c.id AND c.side0 > 'b'",
    "SELECT c.side0, o.price FROM o RIGHT JOIN c ON o.customer = c.id AND o.id < 20",
    "SELECT count(*), count(c.id), count(c.side0) FROM o LEFT JOIN c ON o.code = c.code",
    "SELECT o.id, x.two FROM o LEFT JOIN (SELECT id, 2 AS two FROM c) x ON o.customer = x.id",
    "SELECT c.side0, sum(o.price), avg(o.price), count(DISTINCT o.code) "
    "FROM o JOIN c ON o.customer = c.id WHERE o.id > 3 GROUP BY c.side0 HAVING count(*) > 2",
    "SELECT o.id, c.side0 FROM o JOIN c ON o.customer = c.id "
    "ORDER BY c.side0 DESC NULLS LAST, o.id LIMIT 5 OFFSET 2",
    "SELECT a.id, b.id, c.id FROM o a JOIN o b ON a.customer = b.customer AND a.id < b.id "
    "JOIN c ON b.customer = c.id WHERE c.code = 'k2'",
    "SELECT o.id, g.n FROM o JOIN (SELECT id, count(*) AS n FROM c GROUP BY id) g "
    "ON o.customer = g.id",
    "SELECT DISTINCT o.code, c.id FROM o JOIN c ON o.code = c.code AND o.customer IN (c.id, 3)",
    "SELECT o.id FROM o JOIN c ON o.customer = c.id WHERE c.code IS NULL",
    "SELECT o.id FROM o LEFT JOIN c ON o.customer = c.id WHERE c.id IS NULL",
]  # fmt: skip


@pytest.mark.parametrize("sql", ONE)
async def test_a_join_is_one_statement_with_the_same_answer(
    over: Session, reference: Session, sent: list[str], sql: str
) -> None:
    assert _sorted(await rows(over, sql)) == _sorted(await rows(reference, sql))
    assert len(sent) == 1 and " JOIN " in sent[0], sent


async def test_what_surrounds_a_join_is_sent_with_it(over: Session, sent: list[str]) -> None:
    sql = (
        "SELECT c.side0, count(*) AS n FROM o JOIN c ON o.customer = c.id WHERE o.id > 3 "
        "GROUP BY c.side0 ORDER BY n DESC, c.side0 LIMIT 1"
    )
    await rows(over, sql)
    assert sent == [
        'SELECT "side1"."column1" AS "answer0", (count(*))::int8 AS "answer1" FROM '
        '(SELECT "customer" AS "column0" FROM "public"."o" WHERE ("id" > (3)::int8)) AS "side0" '
        'JOIN (SELECT "id" AS "column0", "side0" AS "column1" FROM "public".'
        f'{remote.quoted(WEIRD)}) AS "side1" ON (("side0"."column0")::int8 = "side1"."column0") '
        'GROUP BY "side1"."column1" ORDER BY count(*) DESC NULLS FIRST, '
        '"side1"."column1" COLLATE "C" ASC NULLS LAST LIMIT 1'
    ]


APART = [
    "SELECT o.id FROM o JOIN c ON o.weight = c.weight",
    "SELECT o.id FROM o FULL JOIN c ON o.customer = c.id",
    "SELECT o.id, c.id FROM o JOIN c ON o.id < c.id",
    "SELECT o.id, c.id FROM o CROSS JOIN c",
    "SELECT o.id FROM o WHERE o.customer NOT IN (SELECT id FROM c)",
    "SELECT o.id FROM o LEFT JOIN c ON o.customer = c.id AND o.weight > c.weight",
    "SELECT o.id, x.id FROM o JOIN (SELECT id FROM c ORDER BY id LIMIT 3) x ON o.customer = x.id",
    "SELECT o.id FROM o JOIN c ON upper(o.code) = upper(c.code)",
    "SELECT o.id, c.id FROM o JOIN c ON o.customer IS NOT DISTINCT FROM c.id",
]


@pytest.mark.parametrize("sql", APART)
async def test_the_engine_joins_what_databases_compare_otherwise(
    over: Session, reference: Session, sent: list[str], sql: str
) -> None:
    assert _sorted(await rows(over, sql)) == _sorted(await rows(reference, sql))
    assert sent and not any(" JOIN " in each for each in sent), sent


async def test_conditions_that_are_not_exact_are_applied_again(
    over: Session, reference: Session, sent: list[str]
) -> None:
    sql = (
        "SELECT o.id, c.side0 FROM o LEFT JOIN c ON o.customer = c.id "
        "WHERE coalesce(c.side0, 'x') <> 'c' AND o.weight + coalesce(c.weight, 0) > 5"
    )
    assert _sorted(await rows(over, sql)) == _sorted(await rows(reference, sql))
    assert len(sent) == 1 and " JOIN " in sent[0]
    sql = "SELECT o.id FROM o JOIN c ON o.customer = c.id WHERE c.weight > 1 AND o.price < 9"
    assert _sorted(await rows(over, sql)) == _sorted(await rows(reference, sql))
    assert len(sent) == 3 and " JOIN " not in sent[1] + sent[2]


async def test_tables_of_two_logins_are_not_joined_there(
    tables: dict[str, RemoteTable], reference: Session, sent: list[str]
) -> None:
    other = replace(tables["c"], login={**tables["c"].login, "application_name": "other"})
    over = session({"o": tables["o"], "c": other})
    assert _sorted(await rows(over, ONE[0])) == _sorted(await rows(reference, ONE[0]))
    assert len(sent) == 2


async def test_a_join_with_rows_of_the_engine_is_its_own(
    over: Session, reference: Session, sent: list[str]
) -> None:
    sql = "SELECT m.k, o.id, c.side0 FROM o JOIN c ON o.customer = c.id JOIN m ON m.k = c.id"
    assert _sorted(await rows(over, sql)) == _sorted(await rows(reference, sql))
    assert sent


async def test_explain_shows_the_join(over: Session, sent: list[str]) -> None:
    found = await rows(over, f"EXPLAIN {ONE[0]}")
    (shown,) = [each["plan"] for each in found if each["plan_type"] == "answered_by_database"]
    await rows(over, ONE[0])
    assert sent == [shown]


async def test_a_value_in_a_condition_stays_a_value(over: Session, sent: list[str]) -> None:
    hostile = "x' OR true) --"
    sql = "SELECT o.id FROM o LEFT JOIN c ON o.customer = c.id AND c.code = $1 WHERE c.code = $1"
    assert await rows(over, sql, parameters={"1": hostile}) == []
    assert len(sent) == 1 and "'x'' OR true) --'" in sent[0]


@pytest.mark.parametrize("test", ["(weight > 1) < TRUE", "(weight = 0) IN (FALSE, FALSE)"])
async def test_a_condition_that_is_not_exact_is_not_compared(
    over: Session, reference: Session, test: str
) -> None:
    sql = f"SELECT id FROM c WHERE {test}"
    assert _sorted(await rows(over, sql)) == _sorted(await rows(reference, sql))


def _sorted(found: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, found))
