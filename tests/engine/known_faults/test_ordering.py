"""The rows after an OFFSET are those of DuckDB, whatever is done with them."""

from collections.abc import Iterator
from itertools import product

import pytest

from caraway_core.errors import QueryError
from tests.differential import asking, cluster_runners, judging, runners
from tests.differential.asking import Runner
from tests.differential.datasets import Dataset
from tests.differential.judging import Judge
from tests.kit.clusters import EAGER

RUNNERS = {
    "one-node": runners.single_node,
    "repeating": runners.repeating,
    "two-by-hash": cluster_runners.in_process(2, EAGER),
}
_COLUMNS = "i, l, d, f, s, t, m"
# Rows with equal keys are equal in all columns, so that the order is total.
INNER = (
    f"SELECT {_COLUMNS} FROM a ORDER BY {_COLUMNS} LIMIT 6 OFFSET 2",
    f"SELECT {_COLUMNS} FROM a ORDER BY {_COLUMNS} OFFSET 15",
    f"SELECT {_COLUMNS} FROM (SELECT *, row_number() OVER (ORDER BY {_COLUMNS}) AS n FROM a) q "
    "ORDER BY n LIMIT 5 OFFSET 4",
    f"SELECT i, 1 AS l, d, f, s, t, m FROM a ORDER BY l, {_COLUMNS.replace(' l,', '')} LIMIT 4 "
    "OFFSET 3",
    f"SELECT i, count(*) OVER () AS l, d, f, s, t, m FROM a ORDER BY {_COLUMNS} LIMIT 4 OFFSET 3",
)
OUTER = (
    "SELECT * FROM ({inner}) q",
    "SELECT i, l FROM ({inner}) q ORDER BY l, i",
    "SELECT i, d FROM ({inner}) q ORDER BY d DESC, i LIMIT 3",
    "SELECT l, rank() OVER (ORDER BY l DESC) AS r FROM ({inner}) q",
    "SELECT s, count(*) AS n FROM ({inner}) q GROUP BY s",
    "SELECT s, count(*) AS n FROM ({inner}) q GROUP BY s ORDER BY n, s",
    "SELECT s, array_agg(i ORDER BY i NULLS LAST) AS x FROM ({inner}) q GROUP BY s",
    "SELECT q.i, b.l FROM ({inner}) q JOIN b ON q.i = b.i ORDER BY q.i, b.l",
    "SELECT i FROM ({inner}) q UNION ALL SELECT i FROM b ORDER BY i",
    "({inner}) UNION ALL ({inner}) ORDER BY i, l, d, f, s, t, m",
    "WITH c AS ({inner}) SELECT max(l) OVER (ORDER BY i) AS x, i FROM c",
    "SELECT DISTINCT l FROM ({inner}) q ORDER BY l",
    "SELECT sum(l) AS n FROM ({inner}) q WHERE i > 0",
    "SELECT i FROM b WHERE i IN (SELECT i FROM ({inner}) q) ORDER BY i",
    "SELECT * FROM (SELECT i, l FROM ({inner}) q ORDER BY l, i LIMIT 3 OFFSET 1) p ORDER BY i, l",
)
COUNTED = (
    "SELECT count(*) FROM (SELECT i FROM (SELECT i FROM a LIMIT 6 OFFSET 2) q ORDER BY i) p",
    "SELECT count(r) FROM (SELECT rank() OVER (ORDER BY i) AS r FROM (SELECT i FROM a LIMIT 6 "
    "OFFSET 2) q) p",
    "SELECT sum(array_length(x)) FROM (SELECT array_agg(l ORDER BY l) AS x FROM (SELECT l FROM a "
    "LIMIT 6 OFFSET 2) q) p",
    "WITH c AS (SELECT i FROM a LIMIT 2, 6) SELECT count(*) FROM (SELECT i FROM c ORDER BY i) p",
)


@pytest.fixture(scope="module", params=RUNNERS)
def runner(request: pytest.FixtureRequest, typed: Dataset) -> Iterator[Runner]:
    with asking.opened(RUNNERS[request.param], typed) as opened:
        yield opened


@pytest.mark.parametrize(("inner", "outer"), list(product(INNER, OUTER)))
def test_rows_after_an_offset(runner: Runner, typed_judge: Judge, inner: str, outer: str) -> None:
    sql = outer.replace("{inner}", inner)
    answer = runner.outcome(sql)
    assert not isinstance(answer, QueryError), answer.message
    theirs = typed_judge.in_order(sql)
    assert theirs is not None
    assert judging.counted(answer) == typed_judge.rows(sql)
    if outer.endswith(("ORDER BY l, i", "LIMIT 3", "n, s", "b.l", "ORDER BY i", "ORDER BY l")):
        assert judging.listed(answer) == theirs


@pytest.mark.parametrize("sql", COUNTED)
def test_the_number_of_rows_without_an_order(runner: Runner, sql: str) -> None:
    answer = runner.outcome(sql)
    assert not isinstance(answer, QueryError), answer.message
    assert answer.column(0).to_pylist() == [6]
