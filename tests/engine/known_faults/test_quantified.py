"""Subqueries over a table of the outer query, without aliases, have the rows that DuckDB gives."""

from collections.abc import Callable, Iterator
from itertools import cycle, product

import duckdb
import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from tests.engine.known_faults import tables
from tests.engine.known_faults.memory import Asked, Rows

_ROWS = pa.table({
    "v": pa.array([1, 2, 3, 3, None, 7], pa.int64()),
    "w": pa.array([1, 2, 3, 4, 5, 3], pa.int64()),
})  # fmt: skip
_VIEW = "SELECT v, w FROM n WHERE w > 1"
Judged = Callable[[str], None]


@pytest.fixture(scope="module")
def agree() -> Iterator[Judged]:
    """Return a check that a statement has the rows that DuckDB gives."""
    ours = Asked(n=_ROWS)
    ours.context.register_view("n_view", ours.context.sql(_VIEW))
    with duckdb.connect() as theirs:
        for name, table in {**tables.tables(), "n": _ROWS}.items():
            theirs.register(name, table)
        theirs.execute(f"CREATE VIEW n_view AS {_VIEW}")

        def check(sql: str) -> None:
            expected: Rows = sorted(theirs.execute(sql).fetchall(), key=str)
            assert ours.mended(sql) == expected, ours.text(sql)

        yield check


OPERATORS = ("=", "<>", "<", ">=")
QUANTIFIERS = ("ALL", "ANY")
OPERANDS = ("v", "{t}.v", "v + 0")
QUERIES = (
    "SELECT v FROM {t} WHERE v = 3",
    "SELECT {t}.v FROM {t} WHERE v < 2",
    "SELECT v FROM {t} WHERE w > 4",
    "SELECT v FROM {t} WHERE w > 100",
    "SELECT max(v) FROM {t}",
    "SELECT v FROM {t} GROUP BY v HAVING count(*) > 1",
    "SELECT DISTINCT v FROM {t} WHERE v IS NOT NULL ORDER BY v",
    "SELECT v FROM {t} WHERE v < 3 UNION SELECT w FROM {t} WHERE w < 3",
    "SELECT v FROM {t} WHERE v < 3 UNION ALL SELECT v FROM {t} WHERE w = 3 ORDER BY v",
    "SELECT * FROM (SELECT v FROM {t} WHERE v > 2) AS {t}",
    "SELECT v FROM {t} AS i WHERE i.w = {t}.w",
    "SELECT x.v FROM {t} AS x JOIN {t} AS y ON x.w = y.w WHERE y.v > 2",
    "SELECT v FROM {t} WHERE v > ANY (SELECT v FROM {t} WHERE w < 3)",
    "SELECT v FROM {t} WHERE v IN "
    "(SELECT w FROM {t} WHERE v = ALL (SELECT v FROM {t} WHERE w = 2))",
    "WITH {t} AS (SELECT 3 AS v) SELECT v FROM {t}",
    "SELECT v FROM {t} WHERE v IS NOT NULL ORDER BY v LIMIT 1",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("table", ["n", "n_view"])
def test_the_outer_operand_stays_outside(table: str, query: str, agree: Judged) -> None:
    for (operator, word), operand in zip(
        product(OPERATORS, QUANTIFIERS), cycle(OPERANDS), strict=False
    ):
        comparison = f"{operand} {operator} {word} ({query})".format(t=table)
        agree(f"SELECT v, w FROM {table} WHERE {comparison}")


FORMS = (
    "{} AND w > 1",
    "NOT ({})",
    "({}) IS NULL",
    "CASE WHEN {} THEN w > 2 ELSE w = 1 END",
    "{} OR w = 1",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("word", ["= ALL", "> ANY", "<> ALL", "IN", "NOT IN"])
def test_a_comparison_inside_a_condition(word: str, form: str, agree: Judged) -> None:
    for query in ("SELECT v FROM n WHERE v < 3", "SELECT v FROM n", "SELECT v FROM n WHERE w > 9"):
        agree(f"SELECT v, w FROM n WHERE {form.format(f'v {word} ({query})')}")


STATEMENTS = (
    "SELECT n.v, k FROM n, t WHERE n.v >= ALL (SELECT v FROM n WHERE n.w = t.k)",
    "SELECT n.v, k FROM n, t WHERE n.v < ANY (SELECT v FROM n WHERE n.w = t.k)",
    "SELECT n.v, k FROM n, t WHERE n.v NOT IN (SELECT v FROM n WHERE n.w = t.k)",
    "SELECT n.v, k FROM n JOIN t ON n.v = t.k AND n.v > ALL (SELECT v FROM n WHERE w < 2)",
    "SELECT n.v, k FROM n JOIN t ON t.k > ANY (SELECT v FROM n_view) AND n.v = t.k",
    "SELECT n.v, k FROM n JOIN t ON n.v = t.k AND EXISTS (SELECT 1 FROM n WHERE w = t.k)",
    "SELECT n.v, k FROM n JOIN t ON n.v >= ALL (SELECT v FROM n WHERE w = t.k) WHERE n.w < 4",
    "SELECT v FROM n GROUP BY v HAVING v > ALL (SELECT v FROM n WHERE w < 3)",
    "SELECT max(w) FROM n GROUP BY v HAVING max(w) > ALL (SELECT w FROM n WHERE w < 3)",
    "SELECT v FROM n WHERE EXISTS (SELECT 1 FROM t WHERE t.k = n.v AND t.k IN (SELECT v FROM n))",
    "SELECT v FROM n WHERE EXISTS "
    "(SELECT 1 FROM t WHERE t.k = n.v AND t.v > ALL (SELECT v FROM n WHERE v = t.k))",
    "SELECT v FROM n WHERE v = (SELECT max(n.v) FROM n WHERE w < 4)",
    "SELECT v FROM n WHERE v < (SELECT max(v) FROM n WHERE w < (SELECT max(w) FROM n))",
    "SELECT v FROM n WHERE (v IN (SELECT v FROM n WHERE w > 2 UNION SELECT k FROM t)) IS NULL",
    "WITH c AS (SELECT v FROM n) SELECT v FROM c WHERE v <= ALL (SELECT v FROM c WHERE v > 2)",
    "SELECT v FROM n WHERE (v IN (SELECT w FROM n WHERE (w IN (SELECT v FROM n)) IS NULL)) IS NULL",
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_that_reads_one_table_several_times(sql: str, agree: Judged) -> None:
    agree(sql)


@pytest.mark.parametrize("join", ["LEFT", "RIGHT", "FULL"])
def test_conditions_of_outer_joins_are_refused(join: str, asked: Asked) -> None:
    with pytest.raises(InvalidQueryError, match="compare in WHERE"):
        asked.mended(f"SELECT 1 FROM t {join} JOIN u ON t.k = u.k AND w > ALL (SELECT w FROM u)")
