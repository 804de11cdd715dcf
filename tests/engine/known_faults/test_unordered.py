"""ORDER BY in aggregates that do not depend on it."""

import pytest

from caraway_engine.known_faults import unordered
from tests.engine.known_faults.memory import Asked


@pytest.mark.parametrize(
    "call",
    [
        "count(v ORDER BY k)", "count(DISTINCT v ORDER BY v)", "sum(v + 1 ORDER BY k DESC)",
        "avg(v ORDER BY k NULLS FIRST, v)", "max(abs(v) ORDER BY k)", "stddev(v ORDER BY k)",
        "var_pop(v ORDER BY k)", "bit_xor(v ORDER BY k)", "bool_and(v > 1 ORDER BY k)",
        "median(v ORDER BY k)", "corr(v, k ORDER BY k)", "regr_slope(v, k ORDER BY k)",
        "count(v ORDER BY k) FILTER (WHERE k > 1)", "approx_distinct(v ORDER BY k)",
    ],
)  # fmt: skip
def test_it_changes_nothing(asked: Asked, call: str) -> None:
    plain, place = call, call.index(" ORDER BY")
    end = call.index(")", place)
    plain = call[:place] + call[end:]
    for form in ("SELECT {} FROM t", "SELECT k, {} FROM t GROUP BY k"):
        assert asked.mended(form.format(call)) == asked.engine(form.format(plain))


def test_others_keep_their_order(asked: Asked) -> None:
    sql = "SELECT array_agg(v ORDER BY v DESC), first_value(v ORDER BY v DESC) FROM t"
    assert asked.text(sql) == sql


@pytest.mark.parametrize(
    ("words", "is_so"),
    [
        ("select k, count(*) from t group by k order by count(v)", False),
        ("select count(*) from (select k from t order by k) q", False),
        ("select count(abs(v) order by k) from t", True),
        ("select stddev (v order\nby k) from t", True),
    ],
)
def test_most_statements_are_not_parsed_for_it(words: str, is_so: bool) -> None:
    assert unordered.may_apply(words) is is_so
