"""Names as SQL identifiers, held against the engine that reads them."""

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_ai.tools.sql_names import plain_name, plain_table, quoted, quoted_table
from caraway_core.ids import TableName


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1))
def test_a_quoted_name_is_that_column_and_no_other(name: str) -> None:
    context = SessionContext()
    context.from_arrow(pa.table({name: [7], f"{name}2": [8]}), name="t")
    read = context.sql(f"SELECT {quoted(name)} FROM t").to_arrow_table()
    assert read.to_pydict() == {name: [7]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("orders", '"orders"'),
        ("s.orders", '"s"."orders"'),
        ('odd "one"', '"odd ""one"""'),
        ('"; DROP TABLE x --', '"""; DROP TABLE x --"'),
    ],
)
def test_a_table_has_one_or_two_parts(name: str, text: str) -> None:
    assert quoted_table(TableName(name)) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a", "a"), ("a_1", "a_1"), ("_", "_"), ("1a", '"1a"'), ("A", '"A"'), ("é", '"é"'),
        ("", '""'), ("a b", '"a b"'), ("order", '"order"'), ("select", '"select"'),
        ("all", '"all"'), ("count", "count"), ("name", "name"), ('a"', '"a"""'), ("a\n", '"a\n"'),
    ],
)  # fmt: skip
def test_a_name_is_quoted_only_where_it_must_be(name: str, text: str) -> None:
    assert plain_name(name) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("orders", "orders"), ("s.orders", "s.orders"), ("S.orders", '"S"."orders"'),
        ("order", '"order"'), ("public.table", '"table"'), ("public.t", "public.t"),
    ],
)  # fmt: skip
def test_a_table_is_quoted_only_where_it_must_be(name: str, text: str) -> None:
    assert plain_table(TableName(name)) == text


WORDS = (
    "all and any array as asc between both by case cast count cross current_date current_time "
    "current_timestamp date day desc distinct else end exists extract false filter for from full "
    "group having id in inner interval into is join key lateral left like limit list map name "
    "natural not null offset on or order outer over partition percent position qualify range "
    "right row rows select set similar some start struct sum table then time timestamp to top "
    "trim true type union unique user using value values when where window with year"
).split()


@pytest.mark.parametrize("word", WORDS)
def test_the_engine_reads_a_word_as_the_name_that_it_is(word: str) -> None:
    context = SessionContext()
    context.from_arrow(pa.table({word: [2, 1]}), name=word)
    name, table = plain_name(word), plain_table(TableName(word))
    for sql in (
        f"SELECT {name} FROM {table} ORDER BY {name}",
        f"SELECT {name} FROM {table} WHERE {name} IS NOT NULL GROUP BY {name} ORDER BY {name}",
        f"SELECT t.{name} FROM {table} AS t ORDER BY t.{name}",
        f"SELECT min({name}) AS {name} FROM {table} UNION SELECT 2 ORDER BY {name}",
    ):
        found = context.sql(sql).to_arrow_table()
        assert found.to_pydict() == {word: [1, 2]}, sql
