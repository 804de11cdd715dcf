"""Long statements are looked at once, and long lists of constants are rewritten as short ones."""

import math
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_engine import known_faults
from caraway_engine.known_faults import (
    clock_times,
    distinct_from,
    empty_sides,
    listed,
    mending,
    syntax,
)
from caraway_engine.known_faults.expression_types import Types

NUMBERS = ", ".join(map(str, range(1, 301)))
TEXTS = ", ".join(f"'key {n}'" for n in range(300))


@pytest.fixture
def context() -> SessionContext:
    made = SessionContext()
    rows = {"k": [1, 2, None], "f": [-0.0, 1.0, 300.0], "s": ["key 7", "x", None]}
    made.register_record_batches("t", [pa.table(rows).to_batches()])
    return made


def planned(context: SessionContext, sql: str) -> tuple[str, Any]:
    made = known_faults.planned(context, sql, context.sql)
    return made.sql, [tuple(row.values()) for row in made.dataframe.to_pylist()]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (f"k IN ({NUMBERS})", [(1,), (2,)]),
        (f"s in({TEXTS}) OR k NOT IN ({NUMBERS})", [(1,)]),
        (f"f IN ({NUMBERS}, 5.25)", [(2,), (None,)]),
    ],
)
def test_long_lists_are_not_parsed_where_nothing_is_wrong(
    context: SessionContext, monkeypatch: pytest.MonkeyPatch, condition: str, rows: Any
) -> None:
    parsed: list[str] = []
    parse = syntax.parse

    def counted(sql: str) -> Any:
        parsed.append(sql)
        return parse(sql)

    monkeypatch.setattr(syntax, "parse", counted)
    sql = f"SELECT k FROM t WHERE {condition}"
    assert planned(context, sql) == (sql, rows)
    assert parsed and max(map(len, parsed)) < 100


@pytest.mark.parametrize("zero", ["0", "0.0", "000"])
def test_a_zero_in_a_long_list_of_floats_is_found(context: SessionContext, zero: str) -> None:
    for values in (f"{zero}, {NUMBERS}", f"{NUMBERS}, {zero}", f"{NUMBERS},{zero},{NUMBERS}"):
        sql, rows = planned(context, f"SELECT f FROM t WHERE f IN ({values})")
        assert rows == [(-0.0,), (1.0,), (300.0,)]
        assert "CAST('-0'" in sql and "299" in sql


def test_other_faults_beside_a_long_list_are_mended(context: SessionContext) -> None:
    sql, rows = planned(context, f"SELECT k + 1 AS n FROM t WHERE k IN ({NUMBERS}) AND k < 2")
    assert rows == [(2,)]
    assert sql.count("299") == 1 and sql != f"SELECT k + 1 AS n FROM t WHERE k IN ({NUMBERS})"
    quoted = f"SELECT 'k in ({NUMBERS})' AS s, k + 1 AS n FROM t WHERE k = 1"
    assert planned(context, quoted)[1] == [(f"k in ({NUMBERS})", 2)]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "word", ["from ", "unnest ", "time ", "x_agg(1), ", "a IS DISTINCT FROM b, ", ":00.0 ", "over "]
)
def test_a_megabyte_of_one_word_is_looked_at_once(context: SessionContext, word: str) -> None:
    """A pattern that looked at the rest of the text for each word would take minutes."""
    sql = "SELECT 1 " + word * (1_000_000 // len(word))
    assert distinct_from.regrouped(sql) is None
    assert listed.moved(sql, Types(context)) is None
    assert clock_times.aligned(sql, Types(context)) is None
    assert empty_sides.named(sql, Types(context)) is None
    assert mending.mend(context, sql) is None


@pytest.mark.timeout(60)
def test_a_megabyte_in_a_constant_is_looked_at_once(context: SessionContext) -> None:
    sql = f"SELECT k FROM t WHERE k > 1 AND TIMESTAMP '{'00:00 ' * 170_000}' > now()"
    assert mending.mend(context, sql) is None


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        (f"SELECT count(*) + 0.5 AS x FROM t GROUP BY {'1' * 5_000}", 3.5),
        (f"SELECT max(k) + 1.5 * {'1' * 5_000} AS x FROM t", math.inf),
        (f"SELECT max(-k) AS x FROM t WHERE k < {'1' * 5_000} GROUP BY ROLLUP ('²')", -1),
    ],
)
def test_numbers_with_thousands_of_digits_are_numbers(
    context: SessionContext, sql: str, found: float
) -> None:
    assert planned(context, sql)[1][0] == (found,)
