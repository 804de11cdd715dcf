from typing import Any

import pyarrow as pa
import pytest

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.sqltext import table_calls
from caraway_core.sqltext.searching import FUNCTIONS, SearchMethod
from caraway_core.statements.searches import RecencyDecay
from caraway_engine.table_functions import arguments
from caraway_engine.table_functions.arguments import AskedFusion, AskedReranking, AskedSearch


def _bound(call: str, **parameters: Any) -> arguments.AskedCall:
    (read,) = table_calls.read(f"FROM {call}", FUNCTIONS)
    values = {name.removeprefix("p"): value for name, value in parameters.items()}
    return arguments.bound(read, values)


def _search(call: str, **parameters: Any) -> AskedSearch:
    found = _bound(call, **parameters)
    assert isinstance(found, AskedSearch)
    return found


def test_a_search_needs_a_table_and_a_text() -> None:
    found = _search("vector_search(docs, 'some text')")
    assert (found.method, found.table, found.text) == (SearchMethod.VECTOR, "docs", "some text")
    assert (found.column, found.limit, found.has_score, found.weight) == (None, 1000, True, 1.0)


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("Docs", "docs"),
        ('"Docs"', "Docs"),
        ("'docs'", "docs"),
        ("s.docs", "s.docs"),
        ("public.docs", "docs"),
        ("caraway.public.docs", "docs"),
    ],
)
def test_tables_are_named_as_in_sql(table: str, name: str) -> None:
    assert _search(f"text_search({table}, 'q')").table == TableName(name)


@pytest.mark.parametrize(
    "call",
    [
        "text_search(docs, 'q', body, 5, false, rank_weight => 2)",
        "text_search(docs, 'q', 'body', limit => 5, include_score => false, rank_weight => 2.0)",
        "text_search(docs, 'q', 5, false, col => body, rank_weight => 2)",
        "text_search(table => docs, query => 'q', column => 'body', limit => 5, "
        "include_score => false, rank_weight => 2)",
    ],
)
def test_optional_arguments_have_a_place_or_a_name(call: str) -> None:
    found = _search(call)
    assert (found.column, found.limit, found.has_score, found.weight) == ("body", 5, False, 2.0)


def test_parameters_are_values() -> None:
    value = ArrowValue.from_array(pa.array(["from arrow"]))
    found = _search("text_search(docs, $1, $2, $3, $4)", p1=value, p2="body", p3=7, p4=False)
    assert (found.text, found.column, found.limit, found.has_score) == (
        "from arrow", "body", 7, False
    )  # fmt: skip


def test_a_fusion_has_its_searches_and_settings() -> None:
    found = _bound(
        "rrf(vector_search(d, 'a', rank_weight => 3), text_search(d, 'b'), join_key => 'id', "
        "k => 10, limit => 7, time_column => at, recency_decay => 'linear', "
        "decay_window_secs => 60)"
    )
    assert isinstance(found, AskedFusion)
    assert [(each.text, each.weight) for each in found.searches] == [("a", 3.0), ("b", 1.0)]
    assert (found.key, found.k, found.limit) == ("id", 10.0, 7)
    assert found.decay == RecencyDecay("at", "linear", window_s=60.0)


@pytest.mark.parametrize(
    ("given", "sql"),
    [
        ("TABLE(SELECT a FROM t)", "SELECT a FROM t"),
        ("TABLE(WITH x AS (SELECT 1) SELECT * FROM x)", "WITH x AS (SELECT 1) SELECT * FROM x"),
        ("TABLE(t)", "SELECT * FROM t"),
        ("TABLE(vector_search(d, 'q'))", "SELECT * FROM vector_search(d, 'q')"),
        ("vector_search(d, 'q')", "SELECT * FROM vector_search(d, 'q')"),
    ],
)
def test_the_input_of_rerank_is_a_query(given: str, sql: str) -> None:
    found = _bound(f"rerank(input => {given}, query => 'q', model => 'm', col => c, limit => 3)")
    assert isinstance(found, AskedReranking)
    assert (found.sql, found.query, found.model, found.column, found.limit) == (
        sql, "q", "m", "c", 3
    )  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("vector_search()", "`table` is missing; for example vector_search(docs,"),
        ("vector_search(docs)", "`query` is missing"),
        ("vector_search(1, 'q')", "must be the name of a table"),
        ("vector_search(a.b.c.d, 'q')", "must be the name of a table"),
        ("vector_search($1, 'q')", "the table cannot be a parameter"),
        ("vector_search(docs, title)", "line 1, column 26: vector_search: the text to search for"),
        ("vector_search(docs, NULL)", "must be in single quotes"),
        ("vector_search(docs, 5)", "must be in single quotes"),
        ("vector_search(docs, '  ')", "is empty"),
        ("vector_search(docs, 'q', limit => 0)", "from 1 to 1,000"),
        ("vector_search(docs, 'q', 1001)", "from 1 to 1,000"),
        ("vector_search(docs, 'q', limit => 1.5)", "from 1 to 1,000"),
        ("vector_search(docs, 'q', limit => 'x')", "from 1 to 1,000"),
        ("vector_search(docs, 'q', limit => NULL)", "from 1 to 1,000"),
        ("vector_search(docs, 'q', include_score => 1)", "must be true or false"),
        ("vector_search(docs, 'q', rank_weight => 0)", "a number above 0"),
        ("vector_search(docs, 'q', rank_weight => 1e400)", "a number above 0"),
        ("vector_search(docs, 'q', rank_weight => 99999999999999999999999)", "a number above 0"),
        ("vector_search(docs, 'q', lmit => 1)", "no argument of vector_search 'lmit'; did you"),
        ("vector_search(docs, 'q', limit => 1, 2)", "arguments with a name come last"),
        ("vector_search(docs, 'q', 1, limit => 2)", "`limit` is given twice"),
        ("vector_search(docs, 'q', true, 5)", "`limit` is not in its place"),
        ("vector_search(docs, rrf(a))", "cannot stand here"),
        ("vector_search(TABLE(SELECT 1), 'q')", "cannot stand here"),
        ("rrf(vector_search(d, 'q'))", "two or more calls"),
        ("rrf(vector_search(d, 'q'), 'x')", "two or more calls"),
        ("rrf(vector_search(d, 'q'), rrf(a))", "not rrf"),
        ("rrf(vector_search(d, 'q'), text_search(e, 'q'))", "are of different tables"),
        (f"rrf({', '.join(['text_search(d, 1)'] * 9)})", "at most 8 searches"),
        ("rrf(text_search(d, 'q'), text_search(d, 'r'), recency_decay => 'linear')", "`time_col"),
        ("rrf(text_search(d, 'q'), text_search(d, 'r'), time_column => t, recency_decay => 'x')",
         "'exponential' or 'linear'"),
        ("rrf(text_search(d, 'q'), text_search(d, 'r'), k => -1)", "`k` must be a number above 0"),
        ("rerank(query => 'q')", "`input` is missing"),
        ("rerank(input => docs)", "must be TABLE(SELECT ...)"),
        ("rerank(input => TABLE(a), model => 5)", "`model` must be a text"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_with_an_example(call: str, message: str) -> None:
    with pytest.raises(InvalidQueryError) as caught:
        _bound(call)
    assert message in caught.value.message


def test_a_parameter_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidQueryError, match="must be in single quotes, or a parameter"):
        _bound("vector_search(docs, $1)", p1=5)
