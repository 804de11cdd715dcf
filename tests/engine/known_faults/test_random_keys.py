"""Windows that random values sort number all rows."""

from collections import Counter

import pyarrow as pa
import pytest

from tests.engine.known_faults.memory import Asked

ROWS = pa.table({"a": pa.array([None, 1, 2, 3], pa.int64())})


@pytest.fixture(scope="module")
def of() -> Asked:
    return Asked(x=ROWS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT row_number() OVER (ORDER BY random() DESC) AS n FROM x",
        "SELECT row_number() OVER (PARTITION BY 1 ORDER BY uuid()) AS n FROM x",
        "SELECT row_number() OVER (ORDER BY 1, random()) AS n FROM x",
        "SELECT count(*) OVER w AS n FROM x WINDOW w AS (ORDER BY random() ROWS 9 PRECEDING)",
        "SELECT n FROM (SELECT *, row_number() OVER (ORDER BY random()) AS n FROM x) q",
        "WITH c AS (SELECT row_number() OVER (ORDER BY random()) AS n FROM x) SELECT n FROM c",
    ],
)
def test_rows_are_numbered(of: Asked, sql: str) -> None:
    assert of.mended(sql) == [(1,), (2,), (3,), (4,)]


def test_random_columns_are_sorted_and_compared_once(of: Asked) -> None:
    """The engine computes a random key of a window again to find its peers."""
    sql = "SELECT count(*) OVER (ORDER BY r) AS n FROM (SELECT *, random() AS r FROM x) q"
    for _ in range(20):
        assert of.mended(sql) == [(1,), (2,), (3,), (4,)]


def test_names_and_other_statements_stay(of: Asked) -> None:
    for sql in (
        "SELECT a, row_number() OVER (ORDER BY random() + a) AS n FROM x",
        "SELECT count(*) AS n, row_number() OVER (ORDER BY random()) AS m FROM x",
        "SELECT row_number() OVER (ORDER BY a) AS n FROM x",
    ):
        assert "nullif" not in of.text(sql)
    text = of.text("SELECT row_number() OVER (ORDER BY random()) FROM x")
    assert 'AS "row_number() ORDER BY [random()' in text


def test_each_order_is_as_likely(of: Asked) -> None:
    first = Counter(
        of.in_order(
            "SELECT a FROM (SELECT a, row_number() OVER (ORDER BY random()) AS n FROM x) q "
            "WHERE n = 1"
        )[0][0]
        for _ in range(200)
    )
    assert set(first) == {None, 1, 2, 3} and max(first.values()) < 120
