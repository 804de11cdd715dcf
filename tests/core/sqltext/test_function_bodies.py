"""Bodies of functions: their parameters become placeholders, and what is none is refused."""

import re

import pytest

from caraway_core.sqltext import function_bodies
from caraway_core.sqltext.sql_functions import FunctionParameter, SqlCast, SqlFunction


def function(body: str, *names: str, is_table: bool = False) -> SqlFunction:
    parameters = tuple(FunctionParameter(name, SqlCast("double")) for name in names)
    return SqlFunction("f", parameters, body, is_table=is_table)


@pytest.mark.parametrize(
    ("body", "prepared"),
    [
        ("a + B", "$a + $b"),
        ('"a" * `b`', "$a * $b"),
        ("$A - a", "$a - $a"),
        ("f(a)", "f($a)"),
        ("a(a)", "a($a)"),
        ("a -- b\n + 1;;", "$a  \n + 1"),
        ("CASE WHEN a THEN 'b' ELSE NULL END", "CASE WHEN $a THEN 'b' ELSE NULL END"),
        ("CAST(a AS double precision)", "CAST($a AS double precision)"),
        ("a::b", "$a::b"),
        ("a.b", "$a.b"),
        ("EXTRACT(b FROM a)", "EXTRACT(b FROM $a)"),
        ("INTERVAL '1' b", "INTERVAL '1' b"),
        ("f(a => b)", "f(a => $b)"),
        ("f(a := b)", "f(a := $b)"),
        ("[a, {'x': b}['x']]", "[$a, {'x': $b}['x']]"),
        ("date '2020-01-01'", "date '2020-01-01'"),
    ],
)
def test_parameters_of_expressions_become_placeholders(body: str, prepared: str) -> None:
    assert function_bodies.prepared(function(body, "a", "b")) == prepared


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("", "is empty"),
        (" ; ", "is empty"),
        ("-- a", "is empty"),
        ("a; b", "has more than one statement"),
        ("(a", "lacks a ')'"),
        ("a)", "has a ')' that closes nothing"),
        ("(a]", "has a ']' that closes nothing"),
        ("'a", "without an end"),
        ('"a', "without an end"),
        ("c", "names 'c', which is no parameter: a, b"),
        ('"A"', "names 'A', which is no parameter"),
        ("$c", "has the placeholder '$c', which is no parameter: $a, $b"),
        ("@a", "has '@a', which means nothing here"),
        ("sum(a)", "calls sum, which needs many rows"),
        ('"SUM"(a)', "calls sum, which needs many rows"),
        ("row_number()", "calls row_number, which needs many rows"),
        ("a OVER b", "has OVER: the body of a scalar function is an expression"),
        ("(SELECT a)", "is a query: write `kind: table`"),
        ("a + (SELECT 1)", "has SELECT: the body of a scalar function"),
        ("SELECT a", "is a query: write `kind: table`"),
        ("DELETE FROM t", "must only read"),
    ],
)
def test_what_is_no_expression_is_refused(body: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        function_bodies.prepared(function(body, "a", "b"))


def test_a_function_without_parameters_names_none() -> None:
    with pytest.raises(ValueError, match="which is no parameter: it has none"):
        function_bodies.prepared(function("a"))
    with pytest.raises(ValueError, match="which is no parameter: it has none"):
        function_bodies.prepared(function("$a"))


@pytest.mark.parametrize(
    ("body", "prepared"),
    [
        ("SELECT * FROM t WHERE x = $A;", "SELECT * FROM t WHERE x = $a"),
        ("SELECT a FROM t", "SELECT a FROM t"),
        ("SELECT (SELECT A FROM args)", "SELECT $a"),
        ("SELECT a FROM args", 'WITH args AS (SELECT $a AS "a", $b AS "b") SELECT a FROM args'),
        ("SELECT 1 FROM t, args", 'WITH args AS (SELECT $a AS "a", $b AS "b") SELECT 1 FROM t, '
         "args"),
        ("SELECT args FROM t", "SELECT args FROM t"),
        ("WITH x AS (SELECT 1) SELECT * FROM x JOIN args ON true",
         'WITH args AS (SELECT $a AS "a", $b AS "b"),  x AS (SELECT 1) SELECT * FROM x '
         "JOIN args ON true"),
        ("WITH RECURSIVE x AS (SELECT 1) SELECT * FROM args",
         'WITH RECURSIVE args AS (SELECT $a AS "a", $b AS "b"),  x AS (SELECT 1) '
         "SELECT * FROM args"),
        ("(VALUES (1))", "(VALUES (1))"),
    ],
)  # fmt: skip
def test_queries_read_parameters_as_placeholders_or_as_a_table(body: str, prepared: str) -> None:
    assert function_bodies.prepared(function(body, "a", "b", is_table=True)) == prepared


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("a + 1", "must be a query, such as SELECT"),
        ("SELECT $c", "has the placeholder '$c'"),
        ("INSERT INTO t SELECT 1", "must only read"),
        ("SELECT 1; SELECT 2", "has more than one statement"),
    ],
)
def test_what_is_no_query_is_refused(body: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        function_bodies.prepared(function(body, "a", is_table=True))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a + f(1)", "f"),
        ('"F" (1)', "f"),
        ("g(f(1))", "g"),
        ("f + 1", None),
        ("'f'(1)", None),
        ("-- f(1)\n1", None),
        ("", None),
    ],
)
def test_the_first_function_that_is_called_is_found(text: str, name: str | None) -> None:
    assert function_bodies.called(text, {"f", "g"}) == name
