"""The context of text-to-SQL as a page and as JSON: its content, and that it can be copied."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.text_to_sql import documents
from caraway_ai.text_to_sql.described import DescribedTable, SampledValues
from caraway_ai.text_to_sql.documents import SqlDialect
from caraway_ai.text_to_sql.relating import TableRelation
from caraway_ai.tools.data_access import KnownColumn, KnownIndex, KnownTable, SearchedColumn
from caraway_core.ids import TableName
from caraway_core.sqltext import table_calls
from caraway_core.sqltext.searching import FUNCTIONS
from caraway_core.sqltext.sql_functions import FunctionParameter, SqlCast, SqlFunction

DIALECT = SqlDialect("55.0.0")


def described(
    name: str = "reviews", *columns: str, rows: Any = (), values: Any = None, **more: Any
) -> DescribedTable:
    table = KnownTable(TableName(name), "dataset", **more)
    known = [KnownColumn(each, "Utf8") for each in columns or ("id", "body")]
    return DescribedTable(table, known, (), values or {}, rows)


def sections(page: str) -> dict[str, str]:
    parts = page.split("\n## ")
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def cells(line: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    kept = line.replace("\\|", "\x00").strip()
    assert kept.startswith("|") and kept.endswith("|")
    return [each.strip().replace("\x00", "|") for each in kept[1:-1].split("|")]


def test_a_page_of_no_tables_says_so() -> None:
    found = sections(documents.as_markdown([], DIALECT))
    assert found["Datasets"] == ""
    assert found["Dataset Relationships"] == "None is known."
    assert "vector_search" not in found["SQL Functions"]
    assert "Sample Data" not in found
    whole = documents.as_json([], DIALECT)
    assert (whole["datasets"], whole["samples"]) == ([], [])
    assert whole["functions"]["spice_specific"] == []


def test_a_page_ends_with_one_line_end_and_is_that_of_the_object() -> None:
    tables = [described(rows=[{"id": "1"}])]
    page = documents.as_markdown(tables, DIALECT)
    assert page.endswith("\n") and not page.endswith("\n\n")
    assert documents.as_json(tables, DIALECT)["context"] == page
    assert "Apache DataFusion 55.0.0." in page


@given(st.text(max_size=30), st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_no_text_breaks_out_of_its_row(description: str, column: str, type_: str) -> None:
    table = KnownTable(TableName("t"), "dataset")
    one = KnownColumn(column, type_, False, description)
    page = documents.as_markdown([DescribedTable(table, [one])], DIALECT)
    rows = [line for line in sections(page)["Schemas"].split("\n") if line]
    assert len(rows) == 3
    clean = [" ".join(text.split()) for text in (column, type_, description)]
    if not any("\\" in text or "\x00" in text for text in clean):
        assert cells(rows[2]) == ["t", clean[0], clean[1], "NO", clean[2]]


@given(st.text(max_size=60) | st.text(alphabet="`'a\n", max_size=12))
def test_no_sample_ends_its_fence(text: str) -> None:
    values = {"body": SampledValues((text,), is_all=True)}
    page = documents.as_markdown([described(values=values, rows=[{"body": text}])], DIALECT)
    sample = sections(page)["Sample Data"]
    assert sample.count("```") == 2
    assert sample.startswith("### reviews\n\n```\n") and sample.endswith("\n```")


def test_samples_tell_whether_there_are_more_values() -> None:
    values = {
        "id": SampledValues((1, 2), is_all=True),
        "body": SampledValues(("a",)),
        "none": SampledValues((), is_all=True),
    }
    one = described(values=values, rows=[{"id": 1, "body": None, "é": "ü"}])
    (sample,) = documents.as_json([one, described("empty")], DIALECT)["samples"]
    assert sample["title"] == "Sample data of reviews"
    assert sample["content"] == 'id: 1, 2\nbody: a, ...\nnone: \n{"id": 1, "body": null, "é": "ü"}'


ODD = ["body", "Body", "my body", 'b"y', "select", "b.y", "bödy", "1"]


@pytest.mark.parametrize("column", ODD)
@pytest.mark.parametrize("table", ["reviews", "s.reviews", "Reviews", "my reviews", "order"])
def test_calls_that_are_shown_can_be_copied(table: str, column: str) -> None:
    searched = SearchedColumn(column, "m", ("id",))
    one = described(table, "id", column, vector_columns=(searched,), text_columns=(searched,))
    (found,) = documents.as_json([one], DIALECT)["datasets"]
    for kind, function in (("vector", "vector_search"), ("full_text", "text_search")):
        (shown,) = found["search"][kind]
        assert (shown["column"], shown["function"]) == (column, function)
        (call,) = table_calls.read(f"SELECT * FROM {shown['syntax']}", FUNCTIONS)
        assert call.function == function
        name, text, of = call.arguments
        assert ".".join(_parts(name.value)) == table
        assert text.value == "query"
        assert _parts(of.value) == (column,)


def _parts(value: Any) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return tuple(map(str, value))


def test_a_column_is_told_with_all_that_is_known_of_it() -> None:
    one = described(
        "t", "id", "a", "b", "c",
        primary_key=("id",),
        indexes=(KnownIndex(("a",), is_unique=True), KnownIndex(("a", "b"))),
        vector_columns=(SearchedColumn("c", chunked=True),),
    )  # fmt: skip
    (found,) = documents.as_json([one], DIALECT)["datasets"]
    told = {
        each["name"]: [each["primary_key"], each["unique"], each["indexed"], each["vector_search"]]
        for each in found["columns"]
    }
    assert told == {
        "id": [True, True, False, False],
        "a": [False, True, True, False],
        "b": [False, False, True, False],
        "c": [False, False, False, True],
    }
    assert found["unique_constraints"] == [["a"]]
    assert [each["name"] for each in found["indexes"]] == ["a_unique", "a_b_lookup"]
    assert (
        found["search"]["vector"][0]["notes"] == "Texts are cut into chunks; the best one counts."
    )


def test_a_key_of_two_columns_makes_neither_unique() -> None:
    (found,) = documents.as_json([described("t", "a", "b", primary_key=("a", "b"))], DIALECT)[
        "datasets"
    ]
    assert [(each["primary_key"], each["unique"]) for each in found["columns"]] == [
        (True, False), (True, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "schema", "bare"), [("t", "public", "t"), ("s.t", "s", "t"), ("S.T u", "S", "T u")]
)
def test_a_table_is_told_by_its_parts(name: str, schema: str, bare: str) -> None:
    (found,) = documents.as_json([described(name)], DIALECT)["datasets"]
    assert (found["catalog"], found["schema"], found["table"]) == ("caraway", schema, bare)
    assert found["name"] == name


def test_relations_are_told_on_the_page_and_in_the_object() -> None:
    table = KnownTable(
        TableName("orders"),
        "dataset",
        primary_key=("id",),
        indexes=(KnownIndex(("a",), is_unique=True), KnownIndex(("b", "c"))),
        text_columns=(SearchedColumn("note"),),
    )
    relation = TableRelation("customer_id", TableName("customers"), "id")
    one = DescribedTable(table, [KnownColumn("id", "Int64")], [relation])
    assert sections(documents.as_markdown([one], DIALECT))["Dataset Relationships"].split("\n") == [
        "- `orders` has the primary key (id).",
        "- `orders.customer_id` is `customers.id`, by its name.",
        "- `orders` has a unique index on (a).",
        "- `orders` has an index on (b, c).",
        "- `orders.note` is searched by words.",
    ]
    (found,) = documents.as_json([one], DIALECT)["datasets"]
    assert found["foreign_keys"] == [
        {
            "columns": ["customer_id"],
            "foreign_table": "customers",
            "foreign_columns": ["id"],
            "inferred": True,
        }
    ]


def test_functions_of_the_manifest_are_told_with_a_call() -> None:
    made = SqlFunction(
        "net", (FunctionParameter("gross", SqlCast("double")),), "gross / 2", description="Net\n of"
    )
    found = documents.as_json([], DIALECT, [made])["functions"]["user_defined"]
    assert found == [
        {
            "name": "net",
            "syntax": made.signature,
            "description": "Net\n of",
            "example": "SELECT net($gross)",
        }
    ]
    page = sections(documents.as_markdown([], DIALECT, [made]))
    assert f"- `{made.signature}`: Net of" in page["SQL Functions"]


def test_the_object_is_json_whatever_the_metadata() -> None:
    one = described("t", description="d", metadata={"owner": "x", "n": 1})
    whole = documents.as_json([one], DIALECT)
    assert json.loads(json.dumps(whole)) == whole
    assert whole["datasets"][0]["metadata"] == {"owner": "x", "n": 1}
