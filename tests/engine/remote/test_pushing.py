"""The parts of a statement that a real database runs, and that the answer is that of one node."""

import math
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.tables import MemoryTable
from caraway_engine.sessions.sessions import Session
from tests.kit import remote
from tests.kit.engine import memory, rows, session
from tests.kit.postgres import Server

COUNT = 100
ROWS = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "g": pa.array([None if each % 7 == 0 else each % 5 for each in range(COUNT)], pa.int32()),
        "s": [f"{'Name' if each % 2 else 'name'} {each % 10}" for each in range(COUNT)],
        "f": [math.nan if each == 50 else each * 1.5 for each in range(COUNT)],
        "n": pa.array([Decimal(each) / 8 for each in range(COUNT)], pa.decimal128(12, 3)),
    }
)
WHOLE = 'SELECT ("id")::int8, ("g")::int4, "s", "f", ("n")::text FROM "public"."t"'


@pytest.fixture(scope="module")
def remote_session(postgres: Server) -> Session:
    remote.load(postgres, "t", ROWS, "id")
    return session({"t": remote.resolved(postgres, "t"), "m": memory(k=[1, 2, 3])})


@pytest.fixture(scope="module")
def reference() -> Session:
    return session({"t": MemoryTable(ROWS.schema, ROWS), "m": memory(k=[1, 2, 3])})


@pytest.fixture
def sent() -> Iterator[list[str]]:
    with remote.watched() as statements:
        yield statements


PUSHED = [
    (
        "SELECT id + 3 AS a FROM t WHERE id - 9223372036854775807 < -9223372036854775800",
        'SELECT (("id" + (3)::int8))::int8 FROM "public"."t" '
        'WHERE (("id" - (9223372036854775807)::int8) < (-9223372036854775800)::int8)',
    ),
    ("SELECT * FROM t", WHOLE),
    ("SELECT s FROM t WHERE id = 5", 'SELECT "s" FROM "public"."t" WHERE ("id" = (5)::int8)'),
    (
        "SELECT g, count(*), min(s), avg(n), count(DISTINCT s) FROM t GROUP BY g",
        'SELECT ("g")::int4, (count(*))::int8, min("s" COLLATE "C"), '
        '((div(sum("n") * 10000000, nullif(count("n"), 0)) * 0.0000001))::text, '
        '(count(DISTINCT "s"))::int8 FROM "public"."t" GROUP BY "g"',
    ),
    (
        "SELECT id, s FROM t ORDER BY s DESC, id LIMIT 3 OFFSET 2",
        'SELECT ("id")::int8 AS "answer0", "s" AS "answer1" FROM "public"."t" '
        'ORDER BY "s" COLLATE "C" DESC NULLS FIRST, "id" ASC NULLS LAST LIMIT 5',
    ),
    (
        "SELECT id FROM t WHERE s LIKE 'N%' AND f > 3 AND upper(s) < 'NAME 5'",
        'SELECT ("id")::int8, "s", "f" FROM "public"."t" WHERE ("f" >= (\'3.0\')::float8 OR '
        "\"f\" = 'NaN'::float8 OR ('3.0')::float8 = 'NaN'::float8) AND (\"s\" LIKE 'N%'::text)",
    ),
    (
        "SELECT m.k, x.c FROM m JOIN (SELECT g, count(*) AS c FROM t GROUP BY g) x ON x.g = m.k",
        'SELECT ("g")::int4, (count(*))::int8 FROM "public"."t" GROUP BY "g"',
    ),
    ("SELECT DISTINCT g FROM t", 'SELECT ("g")::int4 FROM "public"."t" GROUP BY "g"'),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), PUSHED)
async def test_database_is_asked_for_what_it_answers_alike(
    remote_session: Session, reference: Session, sent: list[str], sql: str, expected: str
) -> None:
    assert _sorted(await rows(remote_session, sql)) == _sorted(await rows(reference, sql))
    assert sent == [expected]


@pytest.mark.parametrize("limit", ["LIMIT 2", "OFFSET 1"])
async def test_numbers_that_are_sent_as_text_are_sorted_as_numbers(
    postgres: Server, sent: list[str], limit: str
) -> None:
    name = f"sorted_{limit.split()[0].lower()}"
    numbers = pa.table(
        {"n": pa.array([*map(Decimal, (10, 9, -1, -2)), None], pa.decimal128(12, 3))}
    )
    remote.load(postgres, name, numbers)
    over = session({"t": remote.resolved(postgres, name)})
    sql = f"SELECT n FROM t ORDER BY n {limit}"
    expected = session({"t": MemoryTable(numbers.schema, numbers)})
    assert await rows(over, sql) == await rows(expected, sql)
    assert "ORDER BY" in sent[0]


async def test_the_columns_of_a_sorted_answer_have_names_of_their_own(
    postgres: Server, sent: list[str]
) -> None:
    remote.load(postgres, "answers", pa.table({"answer0": [1], "answer_": [2]}))
    over = session({"t": remote.resolved(postgres, "answers")})
    found = await rows(over, "SELECT answer_ FROM t ORDER BY answer0 LIMIT 1")
    assert found == [{"answer_": 2}]
    assert 'AS "answer__0"' in sent[0]


LEFT = [
    "SELECT try_cast(id * 1000000000 AS INT) AS a FROM t",
    "SELECT try_cast(id + 2147483600 AS INT) AS a FROM t",
    "SELECT count(*) FROM t WHERE try_cast(id + 2147483600 AS INT) IS NULL",
    "SELECT g, r FROM (SELECT g, id, rank() OVER (ORDER BY id) AS r FROM t) x WHERE id > 90",
    "SELECT g, c FROM (SELECT g, id, count(*) OVER (PARTITION BY g) AS c FROM t) x WHERE id = 8",
    "SELECT max(f) FROM t",
    "SELECT sum(f) FROM t",
    "SELECT f, count(*) FROM t GROUP BY f",
    "SELECT g, count(*) FROM t GROUP BY ROLLUP (g)",
    "SELECT n / 3 FROM t",
    "SELECT id FROM t ORDER BY f LIMIT 3",
    "SELECT id FROM t WHERE s LIKE 'N\\%'",
    "SELECT string_agg(s, ',' ORDER BY id) FROM t",
    "SELECT CAST(n AS DECIMAL(12, 1)) AS r, count(*) FROM t GROUP BY 1",
    "SELECT row_number() OVER (ORDER BY id) FROM t",
    "SELECT id FROM t WHERE id NOT IN (SELECT g FROM t WHERE g IS NOT NULL)",
    "SELECT stddev(n) FROM t",
    "SELECT count(*) FROM t WHERE f <> 'NaN'",
    "SELECT 'x' AS k FROM t WHERE g > 100 UNION ALL SELECT s FROM t WHERE id < 2",
]


@pytest.mark.parametrize("sql", LEFT)
async def test_engine_computes_what_databases_do_otherwise(
    remote_session: Session, reference: Session, sent: list[str], sql: str
) -> None:
    assert _sorted(await rows(remote_session, sql)) == _sorted(await rows(reference, sql))
    assert sent and not any("GROUP BY" in each or "ORDER BY" in each for each in sent)


async def test_statement_runs_again_over_the_plan_that_is_kept(
    remote_session: Session, postgres: Server
) -> None:
    sql = "SELECT g, sum(id) AS s FROM t WHERE id >= 0 GROUP BY g HAVING sum(id) > 10 ORDER BY 1"
    before = await rows(remote_session, sql)
    postgres.execute("INSERT INTO t VALUES (-1, 4, 'x', 0, 0), (1000, 4, 'y', 0, 0)")
    try:
        (changed,) = [each for each in await rows(remote_session, sql) if each["g"] == 4]
        (was,) = [each for each in before if each["g"] == 4]
        assert changed["s"] == was["s"] + 1000
    finally:
        postgres.execute("DELETE FROM t WHERE id IN (-1, 1000)")


async def test_parameters_are_values(remote_session: Session, sent: list[str]) -> None:
    hostile = "x' OR true --"
    found = await rows(remote_session, "SELECT id FROM t WHERE s = $1", parameters={"1": hostile})
    assert found == []
    assert sent == [
        'SELECT ("id")::int8 FROM "public"."t" WHERE ("s" = \'x\'\' OR true --\'::text)'
    ]


def _sorted(found: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, found))
