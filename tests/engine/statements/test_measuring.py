"""The parts of a statement that count in its size."""

import pytest

from caraway_engine.statements import measuring
from caraway_engine.statements.sizes import Size
from tests.kit.sql_texts import HIDING, SHOWING


def size(sql: str, views: dict[str, Size] | None = None, **parameters: int) -> Size:
    return measuring.measure(sql, views or {}, parameters, lambda _size: None)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT 1", 0),
        ("SELECT a FROM t", 1),
        ('SELECT a FROM s."t" AS x, `u` y, v', 3),
        ("SELECT a FROM t JOIN (u JOIN v USING (k)) ON t.k = u.k, w WHERE a IN (1, 2)", 4),
        ("SELECT (SELECT max(a) FROM t) FROM (SELECT * FROM u) AS x, LATERAL (SELECT 1 FROM v)", 3),
        ("SELECT a FROM t ORDER BY a, b", 1),
        ("SELECT a FROM t WHERE a = 'FROM u, v' -- FROM u", 1),
        ("SELECT EXTRACT(year FROM d), a FROM t GROUP BY d, a", 2),
        ("SELECT a FROM range(1, 2), t", 2),
        ("SELECT a FROM t UNION ALL SELECT b FROM u", 2),
        ("INSERT INTO t SELECT a FROM u", 1),
    ],
)
def test_tables_are_counted(sql: str, tables: int) -> None:
    assert size(sql).tables == tables


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("WITH c AS (SELECT a FROM t, u) SELECT * FROM c", 2),
        ("WITH c AS (SELECT a FROM t, u) SELECT c.a, c.b FROM c WHERE c.a = c.b", 2),
        ("WITH c AS (SELECT a FROM t, u), d AS (SELECT * FROM c, c x) SELECT * FROM d, d e", 8),
        ('WITH "C" (x) AS NOT MATERIALIZED (SELECT a FROM t, u) SELECT * FROM "C", "C" y', 4),
        ("WITH c AS (WITH c AS (SELECT 1 FROM t) SELECT * FROM c, c) SELECT * FROM c, c", 4),
        ("WITH RECURSIVE c AS (SELECT 1 AS n FROM t UNION ALL SELECT n FROM c) SELECT * FROM c", 2),
        ("EXPLAIN WITH c AS (SELECT a FROM t, u) SELECT * FROM c, c x, c y", 6),
        ("SELECT * FROM (WITH c AS (SELECT 1 FROM t, u) SELECT * FROM c, c x) y", 4),
    ],
)
def test_what_is_read_through_ctes_counts_each_time(sql: str, tables: int) -> None:
    assert size(sql).tables == tables


def test_doubling_ctes_multiply() -> None:
    ctes = ", ".join(f"c{i} AS (SELECT * FROM c{i - 1} UNION ALL SELECT 'x' FROM c{i - 1})"
                     for i in range(1, 26))  # fmt: skip
    found = size(f"WITH c0 AS (SELECT a + 1 FROM t), {ctes} SELECT * FROM c25")
    assert found.tables == 2**25
    assert found.branches == 2**25 - 1
    assert found.text_bytes == 3 * (2**25 - 1)
    assert found.operators >= 2**25


def test_views_count_as_what_they_read() -> None:
    views = {"v": size("SELECT a FROM t, u WHERE a = 1 AND b = 2"), "s.w": Size(tables=10)}
    assert size("SELECT * FROM v, V x, public.v y, s.w, s.v, w", views).tables == 3 * 2 + 10 + 2
    assert size("WITH v AS (SELECT 1) SELECT * FROM v, v x", views).tables == 0


def test_chains_end_with_their_expression() -> None:
    assert size("SELECT a + 1 + 2, b + 1 FROM t WHERE a = 1 AND b = 2").arithmetic_chain == 2
    assert size("SELECT 1 FROM t WHERE a = 1 AND (b = 2 OR (c = 3))").logical_chain == 5
    assert (
        size("SELECT 1 WHERE a = 1 AND EXISTS (SELECT 1 WHERE b = 2 OR c = 3)").logical_chain == 3
    )
    assert size("SELECT coalesce(a + 1, b + 2) + 3").arithmetic_chain == 2
    assert size("SELECT a - 1 WHERE a IN (-1, -2, - 3) AND a=-1").arithmetic_chain == 1
    assert size("SELECT a -1 -1 FROM t").arithmetic_chain == 2
    assert size("SELECT CASE WHEN a = 1 THEN 1 WHEN a = 2 OR a = 3 THEN 2 END").logical_chain == 3
    assert size("SELECT a::int::text").computing_chain == 2
    assert size("SELECT 1 WHERE a = 1; SELECT 1 WHERE a = 1").logical_chain == 1


def test_lists_and_literals_are_counted() -> None:
    found = size(
        "SELECT f(1, 2, 3), b FROM t WHERE a IN (1, 2, 3, 4) AND b = 'four' AND c = $long", long=99
    )
    assert (found.entries, found.columns, found.arguments) == (4, 2, 3)
    assert found.literal_bytes == 99
    assert size("SELECT * FROM (VALUES (1, 2), (3, 4), (5, 6)) AS v (a, b)").entries == 3
    assert found.text_bytes == len("'four'") + 99
    assert size("SELECT $$ab$$, $t$ab$t$, E'a', $a + $a", a=5).text_bytes == 6 + 8 + 4 + 10


@pytest.mark.parametrize(
    ("sql", "nesting"),
    [
        ("SELECT ((1))", 3),
        ("SELECT [[1], [2]][1]", 3),
        ("SELECT CASE WHEN a THEN CASE WHEN b THEN (1) END ELSE 2 END, (1)", 4),
        ("SELECT '((((' /* ((( */ -- (((", 0),
        ("SELECT NOT NOT - -a", 5),
        ("SELECT a OR b AND c = d + (1)", 6),
        ("SELECT a + b + c + d", 2),
        ("SELECT (SELECT (SELECT 1))", 4),
        (")))) SELECT (1)", 2),
    ],
)
def test_nesting_is_measured(sql: str, nesting: int) -> None:
    assert size(sql).nesting == nesting


@pytest.mark.parametrize(
    ("sql", "sets"),
    [
        ("GROUP BY CUBE(a, b, c)", 8),
        ("GROUP BY ROLLUP(a, b, c)", 4),
        ("GROUP BY GROUPING SETS ((a, b), (c), ())", 3),
        ("GROUP BY CUBE(a, b), ROLLUP(c, d)", 12),
        ("GROUP BY CUBE /* x */ -- y\n (a, b)", 4),
        ("GROUP BY a, b", 1),
    ],
)
def test_grouping_sets_multiply(sql: str, sets: int) -> None:
    assert size(f"SELECT count(*) FROM t {sql}").grouping_sets == sets


@pytest.mark.parametrize(
    ("sql", "joined"),
    [
        ("SELECT 1", 0),
        ("SELECT 1 FROM t, u JOIN (v JOIN w USING (a)) USING (a)", 4),
        ("SELECT 1 FROM t UNION ALL SELECT 1 FROM u, v", 2),
        ("WITH c AS (SELECT 1 FROM t UNION ALL SELECT 1 FROM u, v) SELECT 1 FROM c, c x", 4),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u, v) AND a IN (SELECT a FROM w)", 2),
        ("SELECT (SELECT max(a) FROM t), (SELECT max(a) FROM t)", 1),
        ("SELECT 1 FROM (SELECT 1 FROM t, u) x, (SELECT 1 FROM t UNION SELECT 1 FROM u) y", 3),
    ],
)
def test_tables_of_one_from_are_counted(sql: str, joined: int) -> None:
    assert size(sql).joined == joined


@pytest.mark.parametrize("text", HIDING)
def test_hidden_texts_read_no_table(text: str) -> None:
    assert size(f"SELECT {text}").tables == 0


@pytest.mark.parametrize("text", SHOWING)
def test_code_behind_literals_reads_a_table(text: str) -> None:
    assert size(f"SELECT {text}").tables == 1


def test_comments_part_nothing() -> None:
    assert size("SELECT a FROM t WHERE a IN (/* ( */ -1, -- b\n -2)").arithmetic_chain == 0
    assert size("SELECT 1 /* /* /* /* + 1 */ */ */ + 1 */ + 1").arithmetic_chain == 1
    assert size("SELECT 1 /*! + 1 */").arithmetic_chain == 1
