"""A CTE with random values is refused if, and only if, it is read more than once."""

import pytest

from caraway_core.errors import InvalidQueryError
from tests.engine.known_faults.memory import Asked

REFUSED = (
    "WITH a AS (SELECT random() AS r) SELECT x.r FROM a x, a y",
    "WITH a AS (SELECT rand() AS r) SELECT x.r FROM a x, a y",
    'WITH a AS (SELECT RANDOM() AS r) SELECT x.r FROM A x, "a" y',
    "WITH a AS (SELECT uuid() AS r) SELECT x.r FROM a x CROSS JOIN a y",
    "WITH a AS (SELECT random() AS r), b AS (SELECT * FROM a) SELECT x.r FROM b x, b y",
    "WITH a AS (SELECT random() AS r), b AS (SELECT * FROM a) SELECT a.r FROM a, b",
    "WITH a AS (SELECT random() AS r) SELECT r FROM a WHERE r = (SELECT max(r) FROM a)",
    "WITH a AS (SELECT random() AS r) SELECT r FROM a UNION ALL SELECT r FROM a",
    "WITH a AS (SELECT k FROM t WHERE random() < 2) SELECT x.k FROM a x, a y",
    "SELECT * FROM (WITH a AS (SELECT random() AS r) SELECT x.r FROM a x, a y) q",
    "WITH RECURSIVE n AS (SELECT random() AS r, 1 AS i UNION ALL SELECT r, i + 1 FROM n "
    "WHERE i < 3) SELECT x.i FROM n x, n y",
)
ANSWERED = {
    "WITH a AS (SELECT random() AS r) SELECT r < 2 FROM a": [(True,)],
    "WITH RECURSIVE n AS (SELECT random() AS r, 1 AS i UNION ALL SELECT r, i + 1 FROM n "
    "WHERE i < 3) SELECT i FROM n": [(1,), (2,), (3,)],
    "WITH one AS (SELECT random() AS r, k FROM one) SELECT k FROM one": [(7,)],
    "WITH b AS (SELECT k FROM one), one AS (SELECT random() AS r, b.k FROM b, one) "
    "SELECT k FROM one": [(7,)],
    "WITH a AS (SELECT k FROM one WHERE 'random()' <> 'x') SELECT x.k FROM a x, a y": [(7,)],
    'WITH a AS (SELECT k AS "rand" FROM one) SELECT x."rand" FROM a x, a y': [(7,)],
    'WITH a AS (SELECT random() AS r), "A" AS (SELECT 1 AS n) SELECT x.n FROM "A" x, "A" y, a': [
        (1,)
    ],
}


@pytest.mark.parametrize("sql", REFUSED)
def test_values_that_would_be_computed_again_are_refused(asked: Asked, sql: str) -> None:
    with pytest.raises(InvalidQueryError, match="and is read 2 times"):
        asked.text(sql)


@pytest.mark.parametrize("sql", ANSWERED)
def test_values_that_are_computed_once_are_not(asked: Asked, sql: str) -> None:
    assert asked.mended(sql) == ANSWERED[sql]
