"""Where calls of functions are found, and where the same words are none."""

import pytest

from caraway_core.sqltext import function_calls
from caraway_core.sqltext.function_calls import FunctionCall

NAMES = {"f", "g"}


def told(sql: str, call: FunctionCall) -> str:
    kind = "table" if call.is_table else "item" if call.is_item else ""
    inside = [
        sql[each.start : each.end].strip()
        + "".join(f" <{told(sql, inner)}>" for inner in each.calls)
        for each in call.arguments
    ]
    alias = " alias" if call.has_alias else ""
    return f"{kind} {call.name}[{'; '.join(inside)}]{alias} {call.follower}".strip()


CALLS = [
    ("SELECT f(x)", ["item f[x]"]),
    ("select F ( x , [1, 2] ) + 1", ["f[x; [1, 2]]"]),
    ("SELECT DISTINCT f(x), ALL_, f(y) z", ["item f[x]", "f[y]"]),
    ("SELECT f(g(1), 'a)', \"b(\")", ["item f[g(1) <g[1]>; 'a)'; \"b(\"]"]),
    ('SELECT "f"(1), "F"(2)', ["item f[1]"]),
    ("SELECT 'f(1)', $$f(1)$$, f /* f(2) */ (1) -- f(3)", ["item f[1]"]),
    ("SELECT f(1) FROM f(2) AS t, g(3) t2, (f(4)) JOIN g(5) ON f(6)",
     ["item f[1]", "table f[2] alias", "table g[3] alias", "table f[4]", "table g[5]", "f[6]"]),
    ("SELECT x FROM t, LATERAL f(1) WHERE g(2)", ["table f[1]", "g[2]"]),
    ("SELECT extract(year FROM f(1)), trim(BOTH f(2) FROM g(3)) FROM t", ["f[1]", "f[2]", "g[3]"]),
    ("SELECT 1 WHERE a IS NOT DISTINCT FROM f(1)", ["f[1]"]),
    ("DELETE FROM t USING f(1) WHERE g(2)", ["table f[1]", "g[2]"]),
    ("UPDATE t SET a = f(1), b = g(2) WHERE f(3)", ["f[1]", "g[2]", "f[3]"]),
    ("INSERT INTO f (a, b) VALUES (f(1), g(2))", ["f[1]", "g[2]"]),
    ("WITH f(a) AS (SELECT g(1)), g (b) AS (SELECT 2) SELECT f(3) FROM f",
     ["item g[1]", "item f[3]"]),
    ("SELECT CAST(x AS f(3)), x::f(3), s.f(1), t AS f(1)", []),
    ("SELECT 1 FROM t AS f(a), u g(b)", []),
    ("SELECT f(1) OVER (), g(2) FILTER (WHERE f(3))", ["f[1] OVER", "g[2] FILTER", "f[3]"]),
    ("SELECT CASE WHEN f(1) THEN g(2) ELSE f(3) END", ["f[1]", "g[2]", "f[3]"]),
    ("SELECT 1::timestamp with time zone, f(2)", ["item f[2]"]),
    ("SELECT x FROM t GROUP BY f(1) ORDER BY g(2) LIMIT f(3)", ["f[1]", "g[2]", "f[3]"]),
    ("FROM f(1)", ["table f[1]"]),
    ("SELECT f(1", []),
    ("SELECT f(1)) + g(2)", ["f[1]", "g[2]"]),
    ("/*! SELECT f(1) */", ["item f[1]"]),
    ("SELECT f()", ["item f[]"]),
    ("SELECT f", []),
    ("SELECT {'a': f(1)}, a:f(2)", ["f[1]", "f[2]"]),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), CALLS)
def test_calls_are_found(sql: str, expected: list[str]) -> None:
    assert [told(sql, call) for call in function_calls.find(sql, NAMES)] == expected


def test_deep_texts_are_read() -> None:
    deep = "f(" * 20_000
    assert function_calls.find(deep, NAMES) == []
    (call,) = function_calls.find(f"{deep}1{')' * 20_000}", NAMES)
    assert call.end == 60_001
