"""The tree of a statement: it is read, changed and written, and stays the statement."""

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import repeated, syntax
from caraway_engine.known_faults.syntax import SyntaxUnknownError, Tree
from tests.engine.statements.golden import STATEMENTS
from tests.kit.hostile import HOSTILE, TEMPLATES, identifier, literal


def expression(text: str) -> Tree:
    (statement,) = syntax.parse(f"SELECT {text}")
    return statement["Query"]["body"]["Select"]["projection"][0]["UnnamedExpr"]


def written(tree: Tree) -> str:
    (statement,) = syntax.parse("SELECT 1")
    statement["Query"]["body"]["Select"]["projection"] = [{"UnnamedExpr": tree}]
    return syntax.restored(statement).removeprefix("SELECT ")


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_that_is_written_again_is_the_same(sql: str) -> None:
    (statement,) = syntax.parse(sql)
    once = syntax.restored(statement)
    (again,) = syntax.parse(once)
    assert syntax.restored(again) == once
    assert syntax.restored(syntax.copied(statement)) == once


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("template", TEMPLATES)
def test_texts_and_names_are_written_as_they_were(template: str, text: str) -> None:
    sql = template.format(text=literal(text), name=identifier(text))
    (statement,) = syntax.parse(sql)
    found = syntax.restored(statement)
    assert found.count(literal(text)) == sql.count(literal(text))
    assert found.count(identifier(text)) == sql.count(identifier(text))


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT (", "SELECT 'a", "SELECT 1 FROM", ")", "$$"])
def test_what_is_no_sql_is_said_to_be_unknown(sql: str) -> None:
    with pytest.raises(SyntaxUnknownError):
        syntax.parse(sql)


def test_nothing_and_several_statements_are_lists() -> None:
    assert syntax.parse("") == [] and syntax.parse("-- only a comment") == []
    assert len(syntax.parse("SELECT 1; SELECT 2;")) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-1", -1), ("+7", 7), ("-(-(3))", 3), ("((4))", 4), ("0", 0),
        ("9223372036854775808", 2**63), ("1.5", None), ("1e3", None), ("'1'", None),
        ("a", None), ("NULL", None), ("-a", None), ("1 + 1", None), ("NOT 1", None),
    ],
)  # fmt: skip
def test_whole_numbers_are_read(text: str, value: int | None) -> None:
    assert syntax.number(expression(text)) == value


@pytest.mark.parametrize(
    ("text", "name", "arguments", "is_distinct", "is_windowed"),
    [
        ("sum(a)", "sum", ["a"], False, False),
        ("SUM(DISTINCT a + 1)", "sum", ["a + 1"], True, False),
        ('"Sum"(a)', "Sum", ["a"], False, False),
        ("s.f(a, 'x')", "f", ["a", "'x'"], False, False),
        ("count(*)", "count", [], False, False),
        ("now()", "now", [], False, False),
        ("sum(a) OVER (ORDER BY b)", "sum", ["a"], False, True),
        ("sum(a) OVER w", "sum", ["a"], False, True),
        ("make(x => 1)", "make", [], False, False),
    ],
)
def test_calls_are_taken_apart(
    text: str, name: str, arguments: list[str], is_distinct: bool, is_windowed: bool
) -> None:
    call = expression(text)
    assert syntax.function_name(call) == name
    assert [written(each) for each in syntax.arguments(call)] == arguments
    assert syntax.is_distinct(call) is is_distinct
    assert syntax.is_windowed(call) is is_windowed


@pytest.mark.parametrize("text", ["a", "1 + 2", "(sum(a))", "'sum(a)'", "a.b"])
def test_what_is_no_call_has_no_name(text: str) -> None:
    assert syntax.function_name(expression(text)) == ""


def test_a_call_of_another_argument_keeps_its_clauses() -> None:
    call = expression("sum(a) FILTER (WHERE b > 1) OVER (PARTITION BY c)")
    made = syntax.with_argument(call, expression("x + y"))
    assert written(made) == "sum(x + y) FILTER (WHERE b > 1) OVER (PARTITION BY c)"
    assert written(syntax.with_argument(call, expression("1"), "count")).startswith("count(1) F")
    assert written(call) == "sum(a) FILTER (WHERE b > 1) OVER (PARTITION BY c)"


@pytest.mark.parametrize(
    ("form", "places", "result"),
    [
        ("__a + 1", {"a": "b * c"}, "(b * c) + 1"),
        ("__a + 1", {"a": "(b)"}, "((b)) + 1"),
        ("__a = __b AND __a > 0", {"a": "x", "b": "y OR z"}, "(x) = (y OR z) AND (x) > 0"),
        ("f(__a, '__a')", {"a": "'it''s'"}, "f(('it''s'), '__a')"),
        ("CASE WHEN __a THEN 1 END", {"a": '"odd ""name"'}, 'CASE WHEN ("odd ""name") THEN 1 END'),
        ("__a + 1", {"a": "__b", "b": "2"}, "(__b) + 1"),
    ],
)
def test_a_form_is_filled_with_expressions(form: str, places: dict[str, str], result: str) -> None:
    trees = {name: expression(text) for name, text in places.items()}
    assert written(syntax.filled(form, **trees)) == result


def test_a_form_can_be_filled_in_two_steps_and_again() -> None:
    half = syntax.filled("__a + __b", a=expression("x"))
    assert written(syntax.put(half, b=expression("y"))) == "(x) + (y)"
    assert written(syntax.put(half, b=expression("z"))) == "(x) + (z)"
    assert written(syntax.filled("__a + __b", b=expression("q"))) == "__a + (q)"


def test_who_holds_a_part_sees_what_takes_its_place() -> None:
    call = expression("f(a)")
    (argument,) = syntax.arguments(call)
    syntax.replace(argument, expression("b + 1"))
    assert written(call) == "f(b + 1)"
    syntax.replace(argument, argument)
    assert written(call) == "f(b + 1)"


def test_a_copy_changes_alone() -> None:
    call = expression("f(a, [b, 'c'])")
    copy = syntax.copied(call)
    assert copy == call
    syntax.replace(syntax.arguments(copy)[0], expression("other"))
    assert (written(call), written(copy)) == ("f(a, [b, 'c'])", "f(other, [b, 'c'])")


def names(trees: list[Tree]) -> list[str]:
    return [each["Identifier"]["value"] for each in trees if syntax.kind(each) == "Identifier"]


def test_what_is_inside_leaves_out_queries_and_everything_does_not() -> None:
    tree = expression("a + (SELECT b FROM t WHERE c IN (SELECT d FROM u)) + f(e)")
    assert names(list(syntax.inside(tree))) == ["a", "f", "e"]
    assert sorted(names(list(syntax.everything(tree)))) == [*"abcdeftu"]
    assert list(syntax.inside(None)) == list(syntax.everything("text")) == []


def test_a_part_comes_before_what_it_holds() -> None:
    tree = expression("f(g(h(a)))")
    calls = [syntax.function_name(each) for each in syntax.inside(tree)]
    assert [each for each in calls if each] == ["f", "g", "h"]


@pytest.mark.parametrize(
    ("text", "spelled"), [("Abc", "abc"), ('"Abc"', "Abc"), ('"a""b"', 'a"b'), ("É", "é")]
)
def test_a_name_without_quotes_is_in_small_letters(text: str, spelled: str) -> None:
    assert syntax.spelled(expression(text)["Identifier"]) == spelled


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.text(min_size=1, max_size=12).filter(lambda text: "\0" not in text))
def test_any_name_is_written_just_so(name: str) -> None:
    text = written({"Identifier": syntax.identifier(name)})
    assert text == identifier(name)
    assert syntax.spelled(expression(text)["Identifier"]) == name


def test_a_select_is_made_of_its_parts() -> None:
    (parsed,) = syntax.parse("WITH c AS (SELECT 1) SELECT a, b + 1 FROM c JOIN u USING (a) WHERE a")
    query = parsed["Query"]
    select = query["body"]["Select"]
    assert syntax.is_query(query)
    assert not syntax.is_query(select)
    made = syntax.select(select["projection"], select["from"], query["with"])
    assert made == "WITH c AS (SELECT 1) SELECT a, b + 1 FROM c JOIN u USING(a)"
    inner = syntax.restored({"Query": syntax.query(query["body"])})
    assert inner == "SELECT a, b + 1 FROM c JOIN u USING(a) WHERE a"


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("WITH c AS (SELECT random() AS r) SELECT * FROM c x, c y", "c"),
        ("WITH c AS (SELECT uuid() AS r) SELECT * FROM c WHERE r IN (SELECT r FROM c)", "c"),
        ("WITH C AS (SELECT random() AS r) SELECT * FROM c UNION ALL SELECT * FROM C", "c"),
        ("WITH a AS (SELECT random() AS r), b AS (SELECT * FROM a) SELECT * FROM b x, b y", "b"),
        ("SELECT * FROM (WITH c AS (SELECT random() r) SELECT * FROM c x, c y) z", "c"),
        ("WITH c AS (SELECT a FROM t ORDER BY random() LIMIT 1) SELECT * FROM c x, c y", "c"),
    ],
)
def test_a_cte_that_hangs_on_chance_is_read_once(sql: str, name: str) -> None:
    (statement,) = syntax.parse(sql)
    with pytest.raises(InvalidQueryError, match=f"the CTE '{name}' calls random.* read 2 times"):
        repeated.check(statement)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH c AS (SELECT random() AS r) SELECT * FROM c",
        "WITH c AS (SELECT 1 AS r) SELECT * FROM c x, c y",
        "WITH c AS (SELECT 'random()' AS r) SELECT * FROM c x, c y",
        "WITH c AS (SELECT now() AS r) SELECT * FROM c x, c y",
        "WITH c AS (SELECT random() AS r) SELECT c.a FROM t AS c JOIN u ON c.a = u.c",
        "WITH a AS (SELECT random() AS r), b AS (SELECT 1 AS r) SELECT * FROM a, b x, b y",
        "INSERT INTO t SELECT 1",
    ],
)
def test_what_is_the_same_each_time_may_be_read_twice(sql: str) -> None:
    (statement,) = syntax.parse(sql)
    repeated.check(statement)


@pytest.mark.parametrize("name", ["a", 'a"b', 'Utf8("")', '""', '"', 'a""""b"', "'"])
def test_a_name_with_quotes_is_restored(name: str) -> None:
    (statement,) = syntax.parse("SELECT 1 AS x")
    item = statement["Query"]["body"]["Select"]["projection"][0]["ExprWithAlias"]
    item["alias"] = syntax.identifier(name)
    frame = SessionContext().sql(syntax.restored(statement))
    assert pa.schema(frame.schema()).names == [name]
