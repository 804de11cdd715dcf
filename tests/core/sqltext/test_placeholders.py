import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError, ParametersError
from caraway_core.sqltext import placeholders
from tests.kit.hostile import UNCLOSED


@pytest.mark.parametrize(
    ("sql", "rewritten", "names"),
    [
        ("SELECT :a", "SELECT $a", {"a"}),
        ("SELECT $a, $1", "SELECT $a, $1", {"a", "1"}),
        ("SELECT ? + ?", "SELECT $1 + $2", {"1", "2"}),
        ("SELECT ':a ? $1'", "SELECT ':a ? $1'", set()),
        ("SELECT 'it''s :a'", "SELECT 'it''s :a'", set()),
        ('SELECT "c:a?"', 'SELECT "c:a?"', set()),
        ("SELECT 1 -- :a ?\n, ?", "SELECT 1 -- :a ?\n, $1", {"1"}),
        ("SELECT /* ? :a */ 1", "SELECT /* ? :a */ 1", set()),
        ("SELECT /* /* ? */ ' :a */ ?", "SELECT /* /* ? */ ' :a */ $1", {"1"}),
        (r"SELECT E'\' ?', ?", r"SELECT E'\' ?', $1", {"1"}),
        (r"SELECT '\', ?", r"SELECT '\', $1", {"1"}),
        ("SELECT `a?`, ?", "SELECT `a?`, $1", {"1"}),
        ("SELECT x::int, :y::int", "SELECT x::int, $y::int", {"y"}),
        ("SELECT a[1:n], f(x):n", "SELECT a[1:n], f(x):n", set()),
        ("SELECT $$ ? :a $$, :b", "SELECT $$ ? :a $$, $b", {"b"}),
        ("SELECT $t$ ? $t$, ?", "SELECT $t$ ? $t$, $1", {"1"}),
        ("SELECT ?2, ?1", "SELECT $2, $1", {"1", "2"}),
        ("SELECT ?AS a", "SELECT $1 AS a", {"1"}),
        ("SELECT a=:a", "SELECT a=$a", {"a"}),
        ("SELECT a LIMIT?", "SELECT a LIMIT $1", {"1"}),
        ("SELECT ??", "SELECT $1 $2", {"1", "2"}),
        ("SELECT a$1, b$x$ FROM t WHERE c$x$ = ?", None, {"1"}),
        ("SELECT $1$ ? $1$, ?", None, {"1"}),
        (r"SELECT X'\' ?', ?", None, {"1"}),
        (r"SELECT 1E'\' ?', ?", None, {"1"}),
        ("SELECT R''' ' ? ''', ?", None, {"1"}),
        ("SELECT Q'[ ' ? ]', ?", None, {"1"}),
        ("SELECT /* /* /* /* /* */ */ */ */ ? */ ?", None, {"1"}),
        ("SELECT /*!50 ? */", None, {"1"}),
        ("SELECT 1 //* ? -- */", None, {"1"}),
        ("SELECT `a``?`, ?", None, {"1"}),
        ("SELECT `a`:b, :c", "SELECT `a`:b, $c", {"c"}),
        ("SELECT :été", "SELECT $été", {"été"}),
        ("INSERT INTO t VALUES (?, 'a?')", "INSERT INTO t VALUES (($1), 'a?')", {"1"}),
        ("insert into t values ($1, :b)", "insert into t values (($1), ($b))", {"1", "b"}),
        ("DELETE FROM t WHERE a=?", "DELETE FROM t WHERE a=($1)", {"1"}),
        (
            "UPDATE t SET a = (SELECT b FROM u WHERE c = $1), d=:d WHERE e = $2",
            "UPDATE t SET a = (SELECT b FROM u WHERE c = (CASE WHEN true THEN $1 END)), "
            "d=(CASE WHEN true THEN $d END) WHERE e = ($2)",
            {"1", "2", "d"},
        ),
    ],
)
def test_placeholders_are_found_outside_of_literals_and_comments(
    sql: str, rewritten: str | None, names: set[str]
) -> None:
    found = placeholders.find(sql)
    last_mark = "$1".join(sql.rsplit("?", 1))
    assert found.sql == (last_mark if rewritten is None else rewritten)
    assert found.names == names


def test_question_marks_and_names_do_not_mix() -> None:
    with pytest.raises(InvalidQueryError, match="either \\? or named"):
        placeholders.find("SELECT ?, $a")


def test_missing_value_is_named() -> None:
    with pytest.raises(InvalidQueryError, match=r"no value for parameter \$2; given: \$1\."):
        placeholders.find("SELECT ?, ?").check({"1"})


def test_extra_value_is_named() -> None:
    with pytest.raises(InvalidQueryError, match=r"does not use parameter \$b; it uses \$a"):
        placeholders.find("SELECT :a").check({"a", "b"})


def test_values_are_keyed_by_name_or_position() -> None:
    assert placeholders.by_name([7, 8]) == {"1": 7, "2": 8}
    assert placeholders.by_name({"$a": 1, ":b": 2, "c": 3}) == {"a": 1, "b": 2, "c": 3}


@given(st.text(alphabet="'\"$:?-/*ab1 \n[]()", max_size=40))
def test_any_text_is_taken_and_rewriting_is_stable(sql: str) -> None:
    try:
        once = placeholders.find(sql)
    except InvalidQueryError:
        return
    # The result has only the engine's spelling, so a second pass changes nothing.
    assert placeholders.find(once.sql).names == once.names


@pytest.mark.parametrize("quote", ["'", '"'])
def test_long_text_takes_no_memory_for_each_character(quote: str) -> None:
    sql = f"SELECT {quote}{'x' * 1_000_000}{quote}"
    tracemalloc.start()
    try:
        placeholders.find(sql)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(sql)


@pytest.mark.parametrize("text", UNCLOSED)
def test_texts_without_ends_are_read_once(text: str) -> None:
    # Each of these took hours when the end was searched for from every start.
    placeholders.find(f"SELECT {text}")


def test_long_texts_are_not_kept() -> None:
    sql = f"SELECT '{'x' * 1_000_000}', ?"
    tracemalloc.start()
    try:
        for number in range(20):
            assert placeholders.find(f"{sql} + {number}").names == {"1"}
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < len(sql)


@pytest.mark.parametrize("name", ["\xb2", "\u0663", "9" * 5_000, "", "1\xb2"])
def test_odd_names_of_clients_are_refused_by_name(name: str) -> None:
    with pytest.raises(ParametersError, match="does not use parameter"):
        placeholders.find("SELECT 1").check({name, "10", "9"})
    with pytest.raises(ParametersError, match="no value for parameter"):
        placeholders.find("SELECT $1").check({name, "a"})


def test_bare_placeholders_are_those_of_the_statement() -> None:
    for sql in ("INSERT INTO t VALUES (?, ?)", "UPDATE t SET a = $1 WHERE b = $2"):
        found = placeholders.bare(sql)
        assert found.names == placeholders.find(sql).names == {"1", "2"}
        assert "CASE" not in found.sql and "(($" not in found.sql
    with pytest.raises(ParametersError):
        placeholders.bare("SELECT ?, $a")


def test_other_expressions_take_the_place_of_placeholders_only() -> None:
    sql = placeholders.find("SELECT ?, '$1', \"$1\", ? /* $1 */ -- $1").sql
    assert placeholders.replaced(sql, {"1": "f($1)"}) == sql.replace("$1,", "f($1),", 1)
    assert placeholders.replaced(sql, {"3": "x"}) == sql
    assert placeholders.replaced("SELECT $1 + $10", {"1": "x"}) == "SELECT x + $10"
