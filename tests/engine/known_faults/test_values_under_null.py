"""NULL structs, lists and maps of CASE and `nullif` are empty, as in DuckDB."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from caraway_engine.known_faults import syntax, values_under_null
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults.memory import Asked, check_same, duckdb_over, session_over
from tests.kit import generating

STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])
ROWS = pa.table({
    "id": pa.array(range(1, 7), pa.int64()),
    "c": pa.array([1, 2, 2, None, 3, 1], pa.int64()),
    "s": pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 2, "b": "y"}, None,
                   {"a": 3, "b": "x"}, {"a": 1, "b": "x"}], STRUCT),
    "z": pa.array([{"a": 1, "b": "x"}, None, {"a": 2, "b": "y"}, {"a": 4, "b": "x"}, None,
                   {"a": 3, "b": "x"}], STRUCT),
    "l": pa.array([[1], [2, 3], None, [], [4], [1]], pa.list_(pa.int64())),
    "k": pa.array([[1], [2], [3], [], [4], None], pa.list_(pa.int64())),
    "m": pa.array([[("k", 1)], [("k", 2)], None, [], [("k", 3)], [("k", 1)]],
                  pa.map_(pa.string(), pa.int64())),
    "n": pa.array([[("k", 1)], None, [("k", 2)], [], [("k", 4)], [("k", 1)]],
                  pa.map_(pa.string(), pa.int64())),
})  # fmt: skip
_VIEWS = {"made": "SELECT id, c, nullif(s, z) AS s, CASE WHEN c < 3 THEN z END AS z, l, k, m, n "
          "FROM x"}  # fmt: skip
_CONDITIONS = ("c < 2", "c IS NULL", "id > 3", "c <> 2", "id % 2 = 0")
_COLUMNS = {"struct": ("s", "z", "s"), "list": ("l", "k"), "map": ("m", "n")}
# The names of DuckDB are right of those of the engine.
_READS = {
    "struct": (("({})['a']", "({})['a']"), ("get_field({}, 'b')", "({})['b']")),
    "list": (("array_append({}, 9)", "list_append({}, 9)"),
             ("array_prepend(9, {})", "list_prepend(9, {})"), ("({})[1]", "({})[1]")),
    "map": (("({})['k']", "({})['k']"), ("cardinality({}) > 0", "cardinality({}) > 0")),
}  # fmt: skip
_FORMS = (
    "SELECT id, {read} AS v FROM {from_}",
    "SELECT id FROM {from_} WHERE {read} IS NULL",
    "SELECT {read} AS v, count(*) AS n FROM {from_} GROUP BY {read}",
    "SELECT count({read}) AS n, max({read}) AS v FROM {from_}",
    "SELECT id, lag({read}) OVER (ORDER BY id) AS v FROM {from_}",
)
_OVER = (
    "(SELECT id, {value} AS y FROM {from_}) q",
    "(SELECT id, lag({value}) OVER (ORDER BY id) AS y FROM {from_}) q",
    "(SELECT o.id, y FROM x o LEFT JOIN (SELECT id + 2 AS p, {value} AS y FROM {from_}) i ON "
    "i.p = o.id) q",
    "(SELECT id, {value} AS y FROM {from_} UNION ALL SELECT id + 9, {column} AS y FROM x) q",
    "(SELECT id, min({value}) OVER (PARTITION BY id) AS y FROM {from_}) q",
)


@st.composite
def values(draw: DrawFn, kind: str, depth: int = 2) -> str:
    """Draw an expression whose values are NULL in some rows."""
    if depth == 0:
        return draw(st.sampled_from(_COLUMNS[kind]))
    a, b = draw(values(kind, depth - 1)), draw(values(kind, depth - 1))
    condition = draw(st.sampled_from(_CONDITIONS))
    other = draw(st.sampled_from(_CONDITIONS))
    form = draw(st.sampled_from((
        "CASE WHEN {condition} THEN {a} END",
        "nullif({a}, {b})",
        "CASE WHEN {condition} THEN {a} ELSE {b} END",
        "CASE WHEN {condition} THEN {a} ELSE NULL END",
        "CASE WHEN {condition} THEN {a} WHEN {other} THEN {b} END",
        "CASE c WHEN 1 THEN {a} WHEN 2 THEN {b} END",
        "coalesce(nullif({a}, {b}), {a})",
        "{a}",
    )))  # fmt: skip
    return form.format(condition=condition, other=other, a=a, b=b)


@st.composite
def statements(draw: DrawFn) -> tuple[str, str]:
    """Draw a statement, and the same one for DuckDB."""
    kind = draw(st.sampled_from(tuple(_COLUMNS)))
    value = draw(values(kind))
    from_ = draw(st.sampled_from(("x", "made")))
    # DuckDB does not order maps.
    over = draw(st.sampled_from((None, *(_OVER[:-1] if kind == "map" else _OVER))))
    if over is not None:
        column = _COLUMNS[kind][0]
        from_, value = over.format(value=value, from_=from_, column=column), "y"
    form = draw(st.sampled_from(_FORMS[:2] if kind == "list" else _FORMS))
    ours, theirs = draw(st.sampled_from(_READS[kind]))
    return tuple(form.format(read=each.format(value), from_=from_) for each in (ours, theirs))


@pytest.fixture(scope="module")
def over() -> Session:
    return session_over({"x": ROWS}, _VIEWS)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over({"x": ROWS}, _VIEWS)


def test_generated_values(over: Session, duck: duckdb.DuckDBPyConnection) -> None:
    generating.check_same(statements(), 150, lambda pair: check_same(over, duck, *pair))


@pytest.mark.full
def test_other_values(
    over: Session, duck: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    generating.check_others(statements(), 3000, lambda pair: check_same(over, duck, *pair), request)


@pytest.fixture(scope="module")
def of() -> Asked:
    return Asked(x=ROWS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CASE WHEN c < 2 THEN id END AS v, l[1] AS w FROM x",
        "SELECT x.id, nullif(c, id) AS v FROM x",
        "SELECT CASE WHEN c < 2 THEN s ELSE z END['a'] AS v FROM x",
        "SELECT nullif({a: random()}, {a: 2.0})['a'] IS NULL AS v FROM x",
        "SELECT CASE WHEN c < 2 THEN s END FROM x",
    ],
)
def test_other_statements_stay(of: Asked, sql: str) -> None:
    assert of.text(sql) == sql


@pytest.mark.parametrize("words", ["case when a then b end['a']", "nullif(t.a, t.b)"])
def test_what_may_read_values_under_null(words: str) -> None:
    assert values_under_null.may_apply(words, is_view=False)


@pytest.mark.parametrize("words", ["case when a then b end", "s['a']", "nullif(a, b)"])
def test_what_reads_none(words: str) -> None:
    assert not values_under_null.may_apply(words, is_view=False)
    assert values_under_null.may_apply(words, is_view=True) == ("s[" not in words)


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT t.a, CASE WHEN t.a THEN q.b END FROM t, (SELECT 1 AS b) q", False),
        ("WITH c AS (SELECT 1 AS a) SELECT c.a, x.b FROM c JOIN s.x ON c.a = x.b", False),
        ('SELECT t.a FROM t AS "T"', True),
        ("SELECT q.t.a FROM t AS q", True),
        ("SELECT list_append(a, 1) FROM t", True),
        ("SELECT t.a FROM u JOIN t ON u.a = t.a WHERE EXISTS (SELECT 1 FROM v o WHERE o.a)", False),
    ],
)
def test_a_dot_is_before_a_field_or_a_column(sql: str, reads: bool) -> None:
    assert values_under_null.reads(sql, syntax.parse(sql)[0]) == reads
