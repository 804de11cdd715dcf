import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import table_calls
from caraway_core.sqltext.searching import FUNCTIONS


def _named(sql: str) -> str:
    calls = table_calls.read(sql, FUNCTIONS)
    return table_calls.replaced(sql, calls, lambda number, call: f"<{number} {call.function}>")


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT * FROM vector_search(d, 'q')", "SELECT * FROM <1 vector_search>"),
        ("SELECT * FROM VECTOR_SEARCH (d, 'q') v", "SELECT * FROM <1 vector_search> v"),
        ("FROM a, rrf(vector_search(d,'q'), text_search(d,'q')) x", "FROM a, <1 rrf> x"),
        ("FROM a JOIN text_search(d,'q') ON true", "FROM a JOIN <1 text_search> ON true"),
        (
            "FROM a JOIN b ON a.x = b.x, text_search(d,'q')",
            "FROM a JOIN b ON a.x = b.x, <1 text_search>",
        ),
        ("FROM (vector_search(d,'q') CROSS JOIN b)", "FROM (<1 vector_search> CROSS JOIN b)"),
        (
            "WITH s AS (SELECT * FROM text_search(d,'q')) SELECT * FROM s",
            "WITH s AS (SELECT * FROM <1 text_search>) SELECT * FROM s",
        ),
        (
            "SELECT a IN (SELECT a FROM text_search(d,'q')) FROM text_search(d,'r')",
            "SELECT a IN (SELECT a FROM <1 text_search>) FROM <2 text_search>",
        ),
        ("FROM text_search /* d) */ (d, -- x)\n 'q)')", "FROM <1 text_search>"),
        ("FROM rerank(input => TABLE(SELECT (1)), query => 'q') r", "FROM <1 rerank> r"),
        ("FROM text_search(d,'q'); SELECT 1", "FROM <1 text_search>; SELECT 1"),
        ("INSERT INTO t FROM text_search(d,'q')", "INSERT INTO t FROM <1 text_search>"),
    ],
)  # fmt: skip
def test_calls_where_a_table_may_stand_are_replaced(sql: str, named: str) -> None:
    assert _named(sql) == named


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'FROM vector_search(d)' FROM t",
        "SELECT 1 -- FROM vector_search(d)",
        "SELECT 1 /* FROM vector_search(d) */",
        'SELECT * FROM "vector_search"(d)',
        "SELECT * FROM s.vector_search(d)",
        "SELECT vector_search FROM t",
        "SELECT * FROM vector_search",
        "SELECT * FROM t AS rrf(a, b)",
        "SELECT * FROM (SELECT 1) rrf (a)",
        "SELECT * FROM t rrf (a)",
        "WITH rrf (a) AS (SELECT 1) SELECT * FROM rrf",
        "WITH a AS (SELECT 1), rrf (b) AS (SELECT 2) SELECT * FROM rrf",
        "INSERT INTO rrf (a) VALUES (1)",
        "SELECT $$ FROM rrf(a) $$",
        "",
    ],
)
def test_other_texts_have_no_calls(sql: str) -> None:
    assert table_calls.read(sql, FUNCTIONS) == ()


def test_arguments_have_their_kinds() -> None:
    (call,) = table_calls.read(
        "FROM text_search(Docs, 'it''s', \"A b\", s.t, 1, -2.5, TRUE, null, $1, a => $$x'y$$, "
        "b => rrf(c), d => TABLE(SELECT (1), ')'), e => (SELECT 1))",
        FUNCTIONS,
    )
    assert [(each.name, each.kind, each.value) for each in call.arguments] == [
        (None, "name", ("docs",)),
        (None, "text", "it's"),
        (None, "name", ("A b",)),
        (None, "name", ("s", "t")),
        (None, "number", 1),
        (None, "number", -2.5),
        (None, "boolean", True),
        (None, "null", None),
        (None, "parameter", "1"),
        ("a", "text", "x'y"),
        ("b", "call", "rrf(c)"),
        ("d", "query", "SELECT (1), ')'"),
        ("e", "query", "SELECT 1"),
    ]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT vector_search(d, 'q')", "line 1, column 8: vector_search is a table: write it in"),
        ("SELECT a,\n rrf(b) FROM t", "line 2, column 2: rrf is a table"),
        ("SELECT 1 WHERE a = rrf(b)", "rrf is a table"),
        ("FROM t, LATERAL rrf(b)", "without LATERAL"),
        ("DELETE FROM rrf(b)", "rows cannot be deleted from rrf"),
        ("FROM rrf(b", "column 11: a parenthesis of rrf is not closed"),
        ("FROM rrf(", "not closed"),
        ("FROM rrf(TABLE(SELECT 1", "not closed"),
        ("FROM rrf(a,)", "an argument of rrf is not a constant"),
        ("FROM rrf('a' || 'b')", "an argument of rrf is not a constant"),
        ("FROM rrf(lower('a'))", "an argument of rrf is not a constant"),
        ("FROM rrf(E'a')", "an argument of rrf is not a constant"),
        ("FROM rrf([1])", "an argument of rrf is not a constant"),
        ("FROM rrf(- -1)", "an argument of rrf is not a constant"),
        ("FROM rrf(1e)", "an argument of rrf is not a constant"),
        (f"FROM rrf({'9' * 41})", "an argument of rrf is not a constant"),
        (f"FROM {'rrf(' * 9}", "nested more than 4 deep"),
        (f"FROM rrf({','.join('a' * 40)})", "more than 32 arguments"),
        (f"FROM {', '.join(['rrf(a)'] * 10_000)}", "more than 16 searches"),
    ],
)
def test_wrong_calls_say_where_and_what(sql: str, message: str) -> None:
    with pytest.raises(InvalidQueryError) as caught:
        table_calls.read(sql, FUNCTIONS)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("sql", "may"),
    [
        ("SELECT * FROM Vector_Search(d, 'q')", True),
        ("FROM rrf", True),
        ("SELECT my_vector_search, rrfs, _rrf, rrf1 FROM t", False),
        ("", False),
        (f"SELECT {'rrf' * 100}", True),
    ],
)
def test_a_text_may_have_calls_if_it_names_a_function(sql: str, may: bool) -> None:
    assert table_calls.may_have(sql, FUNCTIONS) is may
