"""Bodies in the place of calls: the same answers as a calculation by hand."""

from collections.abc import Callable
from typing import Any

import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext.expanding import Expander, FunctionBodyError
from caraway_core.sqltext.sql_functions import (
    FunctionParameter,
    ReturnedColumn,
    SqlCast,
    SqlFunction,
)

DOUBLE = SqlCast("double", "CAST(", " AS DOUBLE)")
INT = SqlCast("int", "CAST(", " AS BIGINT)")


def scalar(name: str, body: str, *parameters: str, returns: SqlCast | None = DOUBLE) -> SqlFunction:
    made = tuple(FunctionParameter(each, DOUBLE) for each in parameters)
    return SqlFunction(name, made, body, returns)


def table(name: str, body: str, *parameters: str, **more: Any) -> SqlFunction:
    made = tuple(FunctionParameter(each, INT) for each in parameters)
    return SqlFunction(name, made, body, is_table=True, **more)


# Parameters have the names of columns, in the other order.
FUNCTIONS = [
    scalar("minus", "b - a", "b", "a"),
    scalar("twice", "a + $a -- a comment", "a"),
    scalar("both", "minus(x, y) * twice(a => y)", "x", "y"),
    scalar("choose", "CASE WHEN a > b THEN a ELSE 'b'::text || '' = 'c' END", "a", "b"),
]
PYTHON: dict[str, Callable[..., float]] = {
    "minus": lambda b, a: b - a,
    "twice": lambda a: a + a,
    "both": lambda x, y: (x - y) * (y + y),
}
EXPANDER = Expander(FUNCTIONS[:3])
CONTEXT = SessionContext()
Tree = tuple[Any, ...]
_leaves = st.sampled_from(["a", "b", "1", "2.5"]).map(lambda each: (each,))
_trees: st.SearchStrategy[Tree] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("twice"), inner),
        st.tuples(st.sampled_from(["minus", "both", "+", "*"]), inner, inner),
    ),
    max_leaves=8,
)


def written(tree: Tree) -> str:
    name, *inner = tree
    texts = list(map(written, inner))
    if name in "+*":
        return f"({texts[0]} {name} {texts[1]})"
    return f"{name}({', '.join(texts)})" if inner else str(name)


def calculated(tree: Tree, row: dict[str, float]) -> float:
    name, *inner = tree
    values = [calculated(each, row) for each in inner]
    if name == "+":
        return values[0] + values[1]
    if name == "*":
        return values[0] * values[1]
    return PYTHON[name](*values) if inner else row.get(name, 0.0) or float(name)


@settings(max_examples=40, deadline=None)
@given(_trees)
def test_calls_answer_as_a_calculation(tree: Tree) -> None:
    row = {"a": 3.0, "b": 7.0}
    sql = f"SELECT {written(tree)} AS n, a, b FROM (VALUES (3, 7)) AS t(a, b)"
    (found,) = CONTEXT.sql(EXPANDER.expanded(sql).sql).to_pylist()
    assert found == {"n": calculated(tree, row), "a": 3, "b": 7}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT minus(2, 1)", 'SELECT CAST(CAST(2 AS DOUBLE) - CAST(1 AS DOUBLE) AS DOUBLE) AS '
         '"minus(2, 1)"'),
        ("SELECT minus(a := ?, b => ?) x", "SELECT CAST(CAST($2 AS DOUBLE) - CAST($1 AS DOUBLE) "
         "AS DOUBLE) x"),
        ("SELECT twice(1 /* ) */ + 1 -- )\n) + 1", "SELECT CAST(CAST(1   + 1 AS DOUBLE) + CAST(1 "
         "  + 1 AS DOUBLE) AS DOUBLE) + 1"),
        ("SELECT {'a': twice(1)}", "SELECT {'a': CAST(CAST(1 AS DOUBLE) + CAST(1 AS DOUBLE) AS "
         "DOUBLE)}"),
        ("SELECT 'twice(1)' FROM twice", "SELECT 'twice(1)' FROM twice"),
    ],
)  # fmt: skip
def test_texts(sql: str, expected: str) -> None:
    assert EXPANDER.expanded(sql).sql == expected
    assert EXPANDER.expanded(sql) is EXPANDER.expanded(sql) or not EXPANDER.may_call(sql)


def test_tables_take_their_parameters_as_values_and_as_args() -> None:
    expander = Expander(
        [
            table("up_to", "SELECT value FROM generate_series(1, $n)", "n"),
            table(
                "pair",
                "WITH c AS (SELECT 1) SELECT x AS v, (SELECT x FROM args) * 2 AS d FROM args, c",
                "x",
                columns=(ReturnedColumn("v", INT), ReturnedColumn("d", DOUBLE)),
            ),
            table("pairs", "SELECT p.v, u.value FROM pair($y) p, up_to(2) u", "y"),
        ]
    )
    sql = "SELECT v, value, (SELECT d FROM pair(4)) AS d FROM pairs(4) WHERE v IN (SELECT 4)"
    found = CONTEXT.sql(expander.expanded(sql).sql).to_pylist()
    assert found == [{"v": 4, "value": 1, "d": 8.0}, {"v": 4, "value": 2, "d": 8.0}]


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ([scalar("f", "g(x)", "x"), scalar("g", "f(y)", "y")], "calls itself (f -> g -> f)"),
        ([scalar("f", "x + y", "x")], "its body names 'y', which is no parameter: x"),
        ([scalar("f", "1", "x")], "its body does not use the parameter 'x'"),
        ([scalar("f", "x + $y", "x")], "its body has the placeholder '$y'"),
        ([scalar("f", "x + (SELECT max(a) FROM t WHERE b = x)", "x")], "its body has SELECT"),
        ([scalar("f", "SELECT x", "x")], "its body is a query: write `kind: table`"),
        ([scalar("f", "sum(x)", "x")], "its body calls sum, which needs many rows"),
        ([scalar("f", "rank() OVER (ORDER BY x)", "x")], "its body calls rank"),
        ([scalar("f", "x; DROP TABLE t", "x")], "its body has more than one statement"),
        ([scalar("f", "x) + (x", "x")], "its body has a ')' that closes nothing"),
        ([scalar("f", "(x", "x")], "its body lacks a ')'"),
        ([scalar("f", "x || 'a", "x")], "its body has a string"),
        ([scalar("f", " -- x", "x")], "its body is empty"),
        ([scalar("f", "t.x", "x")], "its body names 't'"),
        ([table("f", "x + 1", "x")], "its body must be a query"),
        ([table("f", "WITH a AS (SELECT $x) INSERT INTO t SELECT * FROM a", "x")],
         "its body must only read"),
        ([table("f", "SELECT ?", "x")], "its body has the placeholder '?'"),
        ([scalar("f", "g(x)", "x"), scalar("g", "y + z", "y", "z")],
         "its body: line 1, column 1: g: its argument `z` is missing"),
        ([scalar("f0", "x + x", "x"),
          *(scalar(f"f{n}", f"f{n - 1}(f{n - 1}(x))", "x") for n in range(1, 6))],
         "the calls become more than 65,536 characters"),
    ],
)  # fmt: skip
def test_bodies_that_cannot_be_used(functions: list[SqlFunction], message: str) -> None:
    with pytest.raises(FunctionBodyError) as caught:
        Expander(functions)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("argument", "is_constant"),
    [
        ("1", True),
        ("-1.5 + $1", True),
        ("upper('a') || $2", True),
        ("CAST('1' AS DOUBLE PRECISION)", True),
        ("'2024-01-01'::timestamp with time zone", True),
        ("INTERVAL '1' DAY", True),
        ("CASE WHEN TRUE THEN NULL ELSE now() END", True),
        ("a", False),
        ('"a"', False),
        ("t.a + 1", False),
        ("(SELECT 1)", False),
        ("count(*)", False),
        ("random()", False),
        ("@x", False),
    ],
)
def test_arguments_of_tables_are_constants(argument: str, is_constant: bool) -> None:
    expander = Expander([table("t", "SELECT $x", "x")])
    if is_constant:
        assert expander.expanded(f"SELECT * FROM t({argument})").called == {"t"}
    else:
        with pytest.raises(InvalidQueryError, match="must be a constant"):
            expander.expanded(f"SELECT * FROM t({argument})")
