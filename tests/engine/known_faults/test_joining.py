"""A column of USING has the key of either side, wherever the join is written."""

from typing import Any

import pytest

from caraway_core.errors import InvalidQueryError
from tests.engine.known_faults.memory import Asked

# Of t and u, 4 is a key of u only, and 3 of t only.
_FULL = [(1,), (2,), (3,), (4,), (None,)]
_RIGHT = [(1,), (2,), (4,), (None,)]
KEYS: dict[str, Any] = {
    "SELECT DISTINCT k FROM t FULL JOIN u USING (k)": _FULL,
    "SELECT DISTINCT K FROM T FULL JOIN U USING (K)": _FULL,
    "SELECT DISTINCT k FROM (t FULL JOIN u USING (k))": _FULL,
    "SELECT DISTINCT k FROM ((t FULL JOIN u USING (k)))": _FULL,
    "SELECT k FROM (SELECT * FROM (t FULL JOIN u USING (k))) q GROUP BY k": _FULL,
    "SELECT DISTINCT k FROM (t RIGHT JOIN u USING (k)) CROSS JOIN one_file": _RIGHT,
    "SELECT DISTINCT k FROM t NATURAL FULL JOIN u": _FULL,
    "SELECT DISTINCT k FROM t FULL JOIN u AS q(k, x) USING (k)": _FULL,
    "SELECT DISTINCT k FROM t FULL JOIN (SELECT k FROM u) AS k USING (k)": _FULL,
    'SELECT DISTINCT "K" FROM (SELECT k AS "K" FROM t) "A" FULL JOIN (SELECT k AS "K" FROM u) a '
    'USING ("K")': _FULL,
    "WITH t AS (SELECT k, v FROM t WHERE k < 3) SELECT DISTINCT k FROM t RIGHT JOIN u "
    "USING (k)": _RIGHT,
    "SELECT k FROM t FULL JOIN u USING (k) GROUP BY k ORDER BY k": _FULL,
    "SELECT k FROM t FULL JOIN u USING (k) GROUP BY ALL": _FULL,
    "SELECT k AS z FROM t FULL JOIN u USING (k) GROUP BY z ORDER BY z": _FULL,
    "SELECT k FROM t FULL JOIN u USING (k) GROUP BY k HAVING k > 2": [(3,), (4,)],
    "SELECT k FROM t FULL JOIN u USING (k) UNION SELECT 4 ORDER BY k": _FULL,
    "SELECT count(k) FROM t FULL JOIN u USING (k)": [(9,)],
    "SELECT max(k * 10) FROM t FULL JOIN u USING (k)": [(40,)],
    "SELECT v AS k FROM t FULL JOIN e USING (k) WHERE v < 30 ORDER BY k": [(10,), (20,)],
    "SELECT * FROM (one FULL JOIN named USING (k))": [(1, 5), (2, 5), (7, None)],
    "SELECT * FROM t NATURAL FULL JOIN one_file": [(1, 10), (2, 20), (2, 30), (3, 50), (None, 40)],
}


@pytest.mark.parametrize("sql", KEYS)
def test_keys_of_the_right_side_are_kept(asked: Asked, sql: str) -> None:
    assert asked.mended(sql) == KEYS[sql]


REFUSED = (
    "SELECT k FROM one_file o LEFT JOIN (one a FULL JOIN u USING (k)) ON o.v = u.k",
    "SELECT * FROM one_file o LEFT JOIN (one a FULL JOIN u USING (k)) ON o.v = u.k",
    "SELECT q.k FROM (t FULL JOIN u USING (k)) q",
    "SELECT * EXCLUDE (v) FROM t FULL JOIN u USING (k)",
    "SELECT * FROM one_file o CROSS JOIN (t NATURAL RIGHT JOIN u)",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_would_lose_keys_is_refused(asked: Asked, sql: str) -> None:
    with pytest.raises(InvalidQueryError, match=r"use ON a\.k = b\.k"):
        asked.mended(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT o.v, a.k FROM one_file o LEFT JOIN (one a FULL JOIN u USING (k)) ON o.v = u.k",
        "SELECT t.k, u.k FROM (t FULL JOIN u USING (k))",
        "SELECT k FROM (t LEFT JOIN u USING (k))",
        "SELECT k FROM one_file o CROSS JOIN (t JOIN u USING (k))",
    ],
)
def test_joins_that_lose_nothing_are_left_alone(asked: Asked, sql: str) -> None:
    assert asked.text(sql) == sql
    assert asked.mended(sql) == asked.engine(sql)


NULL_SAFE: dict[str, Any] = {
    "t.k = u.k": [(10,), (20,), (30,)],
    "(t.k = u.k) AND v > 10": [(20,), (30,)],
    "t.k = u.k OR v = 40": [(10,), (20,), (30,), (40,)],
    "NOT t.k = u.k": [],
    "t.k IS NOT DISTINCT FROM u.k": [(10,), (20,), (30,), (40,)],
    "t.k = u.k AND t.k = 1": [(10,)],
}


@pytest.mark.parametrize("condition", NULL_SAFE)
def test_null_equals_null_only_where_it_is_asked_for(asked: Asked, condition: str) -> None:
    sql = f"SELECT DISTINCT v FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k WHERE {condition}"

    assert asked.mended(sql) == NULL_SAFE[condition]
