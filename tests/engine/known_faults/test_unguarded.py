"""Statements of every form run with their guards, or not at all."""

import datetime as dt
import logging

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.tables import MemoryTable
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions.sessions import Session

MOMENT = dt.datetime(2024, 1, 1)
ROWS = pa.table(
    {
        "a": pa.array([1, 2, 3], pa.int64()),
        "b": pa.array([1, 2, 3], pa.int32()),
        "f": [1.0, 2.0, None],
        "s": ["x", "y", None],
        "d": pa.array([MOMENT.date()] * 3),
        "ts": pa.array([MOMENT] * 3, pa.timestamp("us")),
        "l": pa.array([[1, 2], [3], None], pa.list_(pa.int64())),
        "st": pa.array([{"x": 1, "y y": "q"}] * 3),
        "dec": pa.array([1, 2, 3], pa.decimal128(10, 2)),
        "Odd Name": pa.array([1, 2, 3], pa.int64()),
        "m": pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
        "u64": pa.array([1, 2, 3], pa.uint64()),
        "i": pa.array([1, 2, 3], pa.int16()),
        "yes": pa.array([True, False, None]),
    }
)
STATEMENTS = [
    "SELECT a + b, sum(a) OVER (PARTITION BY b ORDER BY a ROWS 1 PRECEDING) FROM t",
    "SELECT sum(a) FILTER (WHERE b > 1), sum(DISTINCT a), sum(ALL a) FROM t",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f) + 1 FROM t",
    "SELECT a + 1 FROM t QUALIFY row_number() OVER (ORDER BY a) = 1",
    "SELECT DISTINCT ON (a) a + 1, b FROM t ORDER BY a",
    "SELECT * REPLACE (a + 1 AS a) FROM t",
    "SELECT * EXCEPT (a), a + 1 FROM t",
    "SELECT a::bigint + 1, cast(a AS varchar) || 'x', try_cast(s AS int) + 1 FROM t",
    "SELECT ts + interval '1 day', d - interval '1' month, d + 1, d - d, ts - ts FROM t",
    "SELECT extract(year FROM ts) + 1, substring(s FROM 1 FOR 2), trim(BOTH 'x' FROM s) FROM t",
    "SELECT l[1] + 1, l[1:2], st['x'] + 2, t.st['y y'], m['k'] + 1 FROM t",
    "SELECT unnest(l) + 1 FROM t",
    "SELECT u.x + 1 FROM t CROSS JOIN unnest(l) AS u(x)",
    "SELECT value + 1 FROM range(1, 4)",
    "VALUES (1 + 1), (2 + 3)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) "
    "SELECT sum(n) FROM r",
    "SELECT (SELECT sum(b) FROM u WHERE u.a = t.a) + 1 FROM t",
    "SELECT a FROM t WHERE a + 1 IN (SELECT b + 1 FROM u)",
    "SELECT a + 1, grouping(a), sum(b) FROM t GROUP BY ROLLUP (a)",
    "SELECT sum(b), a FROM t GROUP BY GROUPING SETS ((a), ())",
    "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b ORDER BY a)",
    "SELECT first_value(a + 1) IGNORE NULLS OVER (ORDER BY a), lag(a, 1, 0) OVER (ORDER BY b) + 1 "
    "FROM t",
    'SELECT a + 1 AS "Odd ""Q""", "Odd Name" + 1 FROM t',
    'SELECT x."Odd Name" + 1, caraway.public.u.a * 2 FROM t AS x, caraway.public.u',
    "SELECT a + 1 FROM t UNION ALL SELECT b + 1 FROM u ORDER BY 1 LIMIT 1 + 1",
    "(SELECT a + 1 FROM t) EXCEPT (SELECT b FROM u LIMIT 1)",
    "SELECT t.a + 1 FROM t FULL JOIN u ON t.a = u.a AND t.b + 1 = u.b",
    "SELECT t.a + u.a FROM t NATURAL JOIN (SELECT a FROM u) AS u",
    "SELECT CASE a WHEN 1 + 1 THEN 2 END, coalesce(a + 1, 0), -a, - -a, NOT yes FROM t",
    "SELECT a % b, a & b, a << 1, dec * dec, dec / 3, u64 * u64, i + i FROM t",
    "SELECT sum(f), min(f), max(f), avg(a), sum(dec), sum(u64), sum(i), sum(dec * dec) FROM t",
    "SELECT min(f) OVER (ORDER BY a), max(f) OVER (PARTITION BY b) FROM t",
    "SELECT avg(ts - ts), sum(ts - ts) FROM t",
    "SELECT count(*) + 1, count(DISTINCT a) + 1 FROM t /* a */ -- b",
    "EXPLAIN SELECT a + 1 FROM t",
    "EXPLAIN ANALYZE SELECT sum(a) FROM t",
    "SELECT a FROM t WHERE (a, b) IN ((1, 1), (2, 2)) AND a * 2 > 1",
    "SELECT a + 1 FROM t WHERE a = ANY (SELECT b FROM u)",
    "FROM t SELECT a + 1",
    'SELECT "a" + "b" AS "A", a * b AS "B" FROM t ORDER BY "A" + "B"',
    "SELECT a + b, count(*) FROM t GROUP BY a + b ORDER BY a + b",
    "SELECT sum(a) * 100.0 / sum(sum(a)) OVER () FROM t GROUP BY s",
    'SELECT "t.a + Int64(1)" FROM (SELECT a + 1 FROM t)',
    'SELECT max("sum(t.a)") FROM (SELECT sum(a) FROM t)',
    "WITH x(q) AS (SELECT a + 1 FROM t) SELECT q + 1 FROM x",
    "SELECT date_trunc('month', d) AS m, sum(a) FROM t GROUP BY date_trunc('month', d) ORDER BY 1",
]


@pytest.fixture(scope="module")
def session() -> Session:
    table = MemoryTable(ROWS.schema, ROWS)
    tables = {TableName("t"): table, TableName("u"): table}
    made = Session(EngineSettings(2), CatalogSnapshot(CatalogVersion(1), tables, {}))
    assert made.install() == {}
    return made


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_of_any_form_has_its_guards(
    session: Session, caplog: pytest.LogCaptureFixture, sql: str
) -> None:
    with caplog.at_level(logging.WARNING):
        session.analyse(Statement(sql, {}))
    assert [each.getMessage() for each in caplog.records] == []


@pytest.mark.parametrize("what", ["a + 1", "sum(a)"])
def test_a_statement_too_deep_for_its_guards_is_refused(
    session: Session, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    def nested(levels: int) -> Statement:
        return Statement(f"SELECT {'abs(' * levels}{what}{')' * levels} AS x FROM t", {})

    with caplog.at_level(logging.WARNING):
        session.analyse(nested(36))
        for levels in range(37, 46):
            try:
                session.analyse(nested(levels))
            except InvalidQueryError as exc:
                assert "nested levels" in exc.message
        with pytest.raises(InvalidQueryError, match="nested levels of parentheses"):
            session.analyse(nested(43))
    assert caplog.records == []
