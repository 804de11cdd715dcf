"""The statement is found in whatever a model writes around it."""

import pytest

from caraway_ai.text_to_sql import extracting

SQL = "SELECT 1 AS x"


@pytest.mark.parametrize(
    "text",
    [
        SQL,
        f"{SQL};",
        f"```sql\n{SQL};\n```",
        f"```\n{SQL}\n```\nThis query returns one.",
        f"Here is the query:\n\n```sql\n{SQL}\n```",
        f"Here is the query: {SQL}",
        f"<think>SELECT nothing? no</think>\n{SQL}",
        f"-- {SQL}",
        f"SQL: {SQL}",
        f"`{SQL}`",
        f"{SQL}; DROP TABLE orders",
        f"```sql\n{SQL}",
        f"```text\nlook\n```\n```sql\n{SQL}\n```",
    ],
)
def test_the_first_statement_is_returned(text: str) -> None:
    assert extracting.statement(text) == SQL


@pytest.mark.parametrize("text", ["", "   ", "```sql\n```", "<think>SELECT 1"])
def test_there_may_be_none(text: str) -> None:
    assert extracting.statement(text) == ""


def test_what_is_no_query_is_left_to_the_engine() -> None:
    assert extracting.statement("DROP TABLE orders") == "DROP TABLE orders"
    insert = "INSERT INTO t SELECT 1"
    assert extracting.statement(insert) == insert


def test_semicolons_in_texts_do_not_end_it() -> None:
    sql = "SELECT ';' AS a, \"b;\" FROM t -- c;"
    assert extracting.statement(sql).startswith("SELECT ';' AS a, \"b;\" FROM t")
