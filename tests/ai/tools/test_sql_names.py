"""Names as SQL identifiers, held against the engine that reads them."""

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_ai.tools.sql_names import quoted, quoted_table
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
