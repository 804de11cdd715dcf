"""Which columns the engine may take for constant, and that it does not in the mended statement."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext

from caraway_core.errors import InvalidQueryError
from caraway_engine import known_faults
from caraway_engine.known_faults import constants

ROWS = 60_000
OUTER = "FROM many t LEFT JOIN named o ON t.k = o.k"


@pytest.fixture
def context(tmp_path: Path) -> SessionContext:
    """With one partition, as on one core, the engine does not part or sort the rows by itself."""
    made = SessionContext(SessionConfig().with_target_partitions(1))
    rows: dict[str, dict[str, list[int]]] = {
        "many": {"k": [number % 3 for number in range(ROWS)], "v": list(range(ROWS))},
        "named": {"k": [1, 2], "c": [5, 5]},
    }
    for name, columns in rows.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        made.register_parquet(name, str(tmp_path / f"{name}.parquet"))
    return made


@pytest.mark.parametrize(
    ("sql", "padded", "totalled"),
    [
        (f"SELECT o.c {OUTER}", set(), set()),
        (f"SELECT o.c {OUTER} AND o.c > 3", {"c"}, set()),
        (f"SELECT o.c {OUTER} AND t.v = o.c WHERE t.k = 1", {"k"}, set()),
        (
            "SELECT o.n FROM many t LEFT JOIN (SELECT c + 1 AS n, k FROM named WHERE c = 5) o "
            "ON t.k = o.k",
            {"n"},
            set(),
        ),
        (
            "SELECT o.n FROM many t LEFT JOIN (SELECT 1 AS n, k FROM named) o USING (k)",
            {"n"},
            set(),
        ),
        ("SELECT c FROM many LEFT JOIN (SELECT 5 AS c FROM named) o ON true", set(), set()),
        ("SELECT c FROM (SELECT 5 AS c FROM named) o RIGHT JOIN many ON c > 9", set(), set()),
        ("SELECT c FROM many FULL JOIN (SELECT 5 AS c FROM named) o ON false", {"c"}, set()),
        (f"SELECT o.c {OUTER} WHERE o.c = 5", set(), set()),
        (
            "SELECT o.a FROM many t LEFT JOIN (SELECT k AS b, c AS a FROM named WHERE c = 5 "
            "UNION ALL SELECT v, k FROM many) o ON t.k = o.b",
            {"a"},
            set(),
        ),
        ("SELECT o.c FROM many t JOIN named o ON t.k = o.k AND o.c = 5", set(), set()),
        ("SELECT c, k FROM named WHERE c = 5 GROUP BY ROLLUP (c, k)", set(), {"c"}),
    ],
)
def test_only_what_may_be_constant_is_found(
    sql: str, padded: set[str], totalled: set[str], context: SessionContext
) -> None:
    found = constants.of_plan(context, context.sql(sql).optimized_logical_plan())
    assert (set(found.padded), set(found.totalled)) == (padded, totalled)


@pytest.mark.parametrize(
    ("sql", "right"),
    [
        (f"SELECT o.c, count(*) {OUTER} AND o.c = 5 GROUP BY o.c", {(5, 40000), (None, 20000)}),
        (f"SELECT c + 1 AS c, count(*) {OUTER} AND c = 5 GROUP BY c", {(6, 40000), (None, 20000)}),
        (f"SELECT c AS z, count(*) {OUTER} AND c = 5 GROUP BY z", {(5, 40000), (None, 20000)}),
        (
            "SELECT c, count(*) FROM many t LEFT JOIN named o ON coalesce(t.k, 0) = abs(o.k) "
            "AND o.c = 5 GROUP BY c",
            {(5, 40000), (None, 20000)},
        ),
        (f"SELECT DISTINCT * {OUTER} AND o.c = 5 WHERE v > 9 AND v < 0", set()),
        (f"SELECT DISTINCT o.c, o.k {OUTER} AND o.c = 5", {(5, 1), (5, 2), (None, None)}),
        (
            f"WITH q AS (SELECT t.v, o.* {OUTER} AND o.c = 5) SELECT c, count(*) FROM q GROUP BY 1",
            {(5, 40000), (None, 20000)},
        ),
        (
            "SELECT a.c, b.c AS d, count(*) FROM (SELECT * FROM named WHERE k = 1) a FULL JOIN "
            "(SELECT * FROM named WHERE k = 2) b ON a.k = b.k GROUP BY a.c, b.c",
            {(5, None, 1), (None, 5, 1)},
        ),
        (
            "SELECT c, k, row_number() OVER (ORDER BY c, k) FROM named WHERE c = 5 "
            "GROUP BY ROLLUP (c, k)",
            {(5, 1, 1), (5, 2, 2), (5, None, 3), (None, None, 4)},
        ),
    ],
)
def test_a_group_comes_once(
    sql: str, right: set[tuple[object, ...]], context: SessionContext
) -> None:
    rows = known_faults.planned(context, sql, context.sql).dataframe.to_pylist()
    assert len(rows) == len(right)
    assert {tuple(row.values()) for row in rows} == right


def test_a_filter_above_a_view_makes_no_constant_below_it(context: SessionContext) -> None:
    sql = "SELECT t.k, t.v, o.k AS other FROM many t LEFT JOIN named o ON t.k = o.k AND t.v % 2 = 0"
    view = known_faults.planned(context, sql, context.sql, is_view=True)
    context.register_view("joined", view.dataframe)
    groups = "SELECT other, count(*) FROM joined WHERE k = 1 GROUP BY other"
    rows = known_faults.planned(context, groups, context.sql).dataframe.to_pylist()
    assert {tuple(row.values()) for row in rows} == {(1, 10000), (None, 10000)}
    assert len(rows) == 2


def test_what_joins_tables_whole_stays_as_it_is(context: SessionContext) -> None:
    sql = f"SELECT o.c, count(*) {OUTER} GROUP BY o.c"
    assert known_faults.planned(context, sql, context.sql).sql == sql


RANKED = "SELECT k FROM (SELECT k, rank() OVER (ORDER BY v) AS r FROM many) p WHERE r > 0"


@pytest.mark.parametrize(
    ("sql", "is_sorted"),
    [
        (f"SELECT k, count(*) FROM ({RANKED}) q GROUP BY ROLLUP (k)", True),
        (f"SELECT k FROM many WHERE k IN (SELECT k FROM ({RANKED}) q) GROUP BY CUBE (k)", False),
        (f"SELECT k FROM ({RANKED}) q WHERE k IN (SELECT k FROM named) GROUP BY CUBE (k)", True),
        (f"SELECT k FROM ({RANKED}) q NATURAL JOIN named GROUP BY ROLLUP (k)", True),
    ],
)
def test_rows_that_a_join_only_leaves_out_are_sorted_as_they_came(
    context: SessionContext, sql: str, is_sorted: bool
) -> None:
    optimized = context.sql(sql).optimized_logical_plan()

    assert constants.of_plan(context, optimized).is_sorted == is_sorted


@pytest.mark.parametrize("order", ["grouping(q.k), k", "CASE WHEN grouping(q.k) = 0 THEN k END, k"])
def test_order_by_grouping_means_the_key(context: SessionContext, order: str) -> None:
    sql = f"SELECT k, count(*) AS n FROM ({RANKED}) q GROUP BY ROLLUP (k) ORDER BY {order}"
    found = known_faults.planned(context, sql, context.sql)

    assert found.sql != sql
    assert {*found.dataframe.to_pydict()["k"]} == {0, 1, 2, None}


def test_a_form_that_the_engine_cannot_run_is_refused(context: SessionContext) -> None:
    """It takes `k` below ORDER BY for the column of the answer, which is not a key."""
    sql = f"SELECT k, count(*) AS n FROM ({RANKED}) q GROUP BY ROLLUP (k) ORDER BY grouping(k), k"
    with pytest.raises(InvalidQueryError, match="no safe form was found"):
        known_faults.planned(context, sql, context.sql)
