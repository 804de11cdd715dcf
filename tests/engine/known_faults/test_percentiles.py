"""Percentiles are between their two values, as in DuckDB."""

import math

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from caraway_engine.known_faults import percentiles
from tests.engine.known_faults.memory import Asked, duckdb_over
from tests.kit import generating

_NUMBERS = [3, None, 7, 1, 1, 12, None, 5, 100, 8, -4, 2]
ROWS = pa.table({
    "id": pa.array(range(12), pa.int64()),
    "g": pa.array([1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, None], pa.int64()),
    "i": pa.array(_NUMBERS, pa.int64()),
    "s": pa.array(_NUMBERS, pa.int8()),
    "d": pa.array(_NUMBERS, pa.decimal128(9, 2)),
    "f": pa.array([None if n is None else n / 4 for n in _NUMBERS], pa.float32()),
    "x": pa.array([None if n is None else n / 3 for n in _NUMBERS], pa.float64()),
    "y": pa.array([math.inf, 1, math.inf, -math.inf, 2, -math.inf, 3, 4, None, 5, 6, 7]),
})  # fmt: skip
_VALUES = ("i", "s", "d", "x", "y", "i + 1", "x * 2", "CASE WHEN g = 1 THEN i END")
_SHARES = ("0", "1", "0.5", "0.7", "0.1", "0.333", "0.9999999", "1 - 0.3", "1e-9")
_FORMS = (
    "SELECT {} AS a FROM x",
    "SELECT g, {} AS a, {} AS b FROM x GROUP BY g",
    "SELECT g, {} AS a FROM x GROUP BY g HAVING {} > 2",
    "SELECT id % 3 AS m, count(*) AS n, {} AS a FROM x WHERE id > 2 GROUP BY 1",
    "SELECT {} AS a FROM x WHERE id > 99",
    "SELECT max(a) AS m FROM (SELECT {} AS a FROM x GROUP BY g) q",
    "SELECT g, {} AS a FROM x GROUP BY ROLLUP (g)",
    "SELECT (SELECT {} FROM x) AS a FROM x WHERE id < 2",
)


@st.composite
def calls(draw: DrawFn) -> tuple[str, str]:
    """Draw a percentile, and the same one for DuckDB, which gives DECIMAL for DECIMAL."""
    value, share = draw(st.sampled_from(_VALUES)), draw(st.sampled_from(_SHARES))
    meaning = f"CAST({value} AS DOUBLE)"
    ending = draw(st.sampled_from(("", " FILTER (WHERE id <> 4)")))
    if draw(st.booleans()):
        # DuckDB takes the first value of a descending order for the last one.
        direction = draw(st.sampled_from(("", " DESC"))) if share != "0" else ""
        form = "percentile_cont({share}) WITHIN GROUP (ORDER BY {value}{direction}){ending}"
    else:
        direction = draw(st.sampled_from(("", "DISTINCT ")))
        name = "quantile_cont"
        form = name + "({direction}{value}, {share}){ending}"
    parts = {"share": share, "direction": direction, "ending": ending}
    return form.format(value=value, **parts), form.format(value=meaning, **parts)


@st.composite
def statements(draw: DrawFn) -> tuple[str, str]:
    form, pairs = draw(st.sampled_from(_FORMS)), (draw(calls()), draw(calls()))
    return form.format(*(each[0] for each in pairs)), form.format(*(each[1] for each in pairs))


@pytest.fixture(scope="module")
def of() -> Asked:
    return Asked(x=ROWS)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over({"x": ROWS})


def check(of: Asked, duck: duckdb.DuckDBPyConnection, pair: tuple[str, str]) -> None:
    ours, meaning = pair
    rows = [tuple(map(_rounded, row)) for row in of.mended(ours)]
    right = [tuple(map(_rounded, row)) for row in duck.sql(meaning).fetchall()]
    assert sorted(rows, key=str) == sorted(right, key=str), ours


def _rounded(value: object) -> object:
    # DuckDB computes in another order.
    return round(value, 9) + 0.0 if isinstance(value, float) else value


def test_generated_percentiles(of: Asked, duck: duckdb.DuckDBPyConnection) -> None:
    generating.check_same(statements(), 100, lambda pair: check(of, duck, pair))


@pytest.mark.full
def test_other_percentiles(
    of: Asked, duck: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    generating.check_others(statements(), 3000, lambda pair: check(of, duck, pair), request)


def test_small_frames(of: Asked, duck: duckdb.DuckDBPyConnection) -> None:
    for frame in ("2 PRECEDING", "BETWEEN 1 FOLLOWING AND 4 FOLLOWING"):
        over = f"OVER (PARTITION BY g ORDER BY id ROWS {frame})"
        sql = f"SELECT id, quantile_cont(x, 0.7) {over} AS a FROM x"
        check(of, duck, (sql, sql))
        assert "array_agg" in of.text(sql)


def test_percentiles_of_float_are_float(of: Asked) -> None:
    call = "quantile_cont(f, 0.7)"
    (row,) = of.mended(f"SELECT {call} AS a, arrow_typeof({call}) AS b FROM x")
    assert row == (pytest.approx(1.825, rel=1e-7), "Float32")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, quantile_cont(i, 0.7) OVER (PARTITION BY g) AS a FROM x",
        "SELECT id, quantile_cont(i, 0.7) OVER (ORDER BY id) AS a FROM x",
        "SELECT quantile_cont(i, 0.7) OVER (ORDER BY id ROWS 101 PRECEDING) AS a FROM x",
        "SELECT quantile_cont(i, 0.7) OVER w AS a FROM x WINDOW w AS (PARTITION BY g)",
        "SELECT quantile_cont(random(), 0.7) < 2 AS a FROM x",
        "SELECT median(i) AS a FROM x",
    ],
)
def test_others_stay(of: Asked, sql: str) -> None:
    assert "array_agg" not in of.text(sql)


@pytest.mark.parametrize("share", ["1.5", "NULL", "1 + 0.5", "-0.5"])
def test_what_is_no_share_is_refused(of: Asked, share: str) -> None:
    with pytest.raises(Exception, match="Percentile value"):
        of.mended(f"SELECT percentile_cont({share}) WITHIN GROUP (ORDER BY i) FROM x")


def test_parameters_are_shares(of: Asked) -> None:
    sql = "SELECT quantile_cont(id, $p) AS a FROM x WHERE id < 5"
    assert of.mended(sql, {"p": 0.7}) == [(2.8,)]
    with pytest.raises(Exception, match="Percentile value"):
        of.mended(sql, {"p": 1.5})


def test_values_are_guarded_where_they_are_computed(of: Asked) -> None:
    sql = "SELECT quantile_cont(i + 9223372036854775800, 0.5) FROM x"
    with pytest.raises(Exception, match="out of range"):
        of.mended(sql)


def test_what_may_compute_percentiles() -> None:
    assert percentiles.may_apply("select quantile_cont (a, 0.5) from t")
    assert not percentiles.may_apply("select median(a) from t")
