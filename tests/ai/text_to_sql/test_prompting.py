"""The description of the tables for a model, and the parts that are left out of a long one."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from caraway_ai.text_to_sql import prompting, relating
from caraway_ai.text_to_sql.described import DescribedTable, SampledValues
from caraway_ai.text_to_sql.prompting import sql_type
from caraway_ai.text_to_sql.relating import TableRelation
from caraway_ai.tools.data_access import KnownColumn, KnownTable, SearchedColumn
from caraway_core.ids import TableName
from caraway_serving.formats import datatypes


def table(name: str, columns: Mapping[str, str], **more: object) -> DescribedTable:
    known = KnownTable(TableName(name), "dataset", **more)  # type: ignore[arg-type] # a test's
    return DescribedTable(known, [KnownColumn(each, kind) for each, kind in columns.items()])


def test_a_table_is_told_as_sql_with_comments() -> None:
    known = KnownTable(
        TableName("shop.orders"),
        "dataset",
        description="All\norders",
        primary_key=("id",),
        text_columns=(SearchedColumn("note"),),
    )
    columns = [
        KnownColumn("id", "Int64", nullable=False),
        KnownColumn("State", "Utf8", description="of the order"),
        KnownColumn("placed", "Timestamp(Microsecond, None)"),
        KnownColumn("note", "Utf8View"),
        KnownColumn("price", "Decimal128(15, 2)"),
    ]
    values = {
        "State": SampledValues(("open", "it's"), is_all=True),
        "placed": SampledValues(("2024-01-01", "2024-12-31")),
        "note": SampledValues(("a", "b")),
    }
    assert prompting.ddl(DescribedTable(known, columns, values=values)) == "\n".join(
        [
            "-- All orders",
            "CREATE TABLE shop.orders (",
            "  id BIGINT NOT NULL,",
            "  \"State\" VARCHAR, -- of the order; one of: 'open', 'it''s'",
            "  placed TIMESTAMP, -- from 2024-01-01 to 2024-12-31",
            "  note VARCHAR, -- for example: 'a', 'b'; searched by words: "
            "text_search(shop.orders, 'text')",
            "  price DECIMAL(15,2),",
            "  PRIMARY KEY (id)",
            ");",
        ]
    )


@pytest.mark.parametrize(
    ("arrow", "sql"),
    [
        ("Dictionary(Int32, Utf8)", "VARCHAR"),
        ("List(Int64)", "BIGINT[]"),
        ("FixedSizeList(3 x Float32)", "REAL[]"),
        ('Timestamp(Nanosecond, Some("UTC"))', "TIMESTAMPTZ"),
        ("Time64(Microsecond)", "TIME"),
        ("Date32", "DATE"),
    ],
)
def test_types_have_their_sql_names(arrow: str, sql: str) -> None:
    assert sql_type(arrow) == sql


KEYS = {"id": "Int64", "customer_id": "Int64", "name": "Utf8"}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (
            [table("orders", KEYS), table("customers", {"id": "Int64", "name": "Utf8"})],
            {"orders": [("customer_id", "customers", "id")]},
        ),
        (
            [
                table("orders", {"o_orderkey": "Int64", "o_custkey": "Int64"}),
                table("customer", {"c_custkey": "Int64", "c_nationkey": "Int64"}),
                table("nation", {"n_nationkey": "Int64", "n_name": "Utf8"}),
            ],
            {
                "orders": [("o_custkey", "customer", "c_custkey")],
                "customer": [("c_nationkey", "nation", "n_nationkey")],
            },
        ),
        (
            [table("orders", KEYS), table("customers", {"id": "Utf8"})],
            {},
        ),
        ([table("a", {"id": "Int64"}), table("b", {"id": "Int64"})], {}),
    ],
)
def test_columns_that_belong_together_are_found_by_name(
    tables: Sequence[DescribedTable], expected: object
) -> None:
    found = relating.found([(each.table, each.columns) for each in tables])
    told = {
        name: [(each.column, each.other, each.other_column) for each in relations]
        for name, relations in found.items()
    }
    assert told == expected


async def test_the_tables_of_the_question_are_kept() -> None:
    tables = [table(f"log{number}", {"id": "Int64", "line": "Utf8"}) for number in range(50)]
    orders = table("orders", KEYS)
    related = DescribedTable(
        orders.table, orders.columns, [TableRelation("customer_id", TableName("people"), "id")]
    )
    people = table("people", {"id": "Int64"})
    ranked = await prompting.ranked("how many orders?", [*tables, people, related], None)
    assert ranked[0].table.name == "orders"
    kept = [each.table.name for each in prompting.within(ranked, 120)]
    assert kept == ["orders", "people"]
    assert len(prompting.within(ranked, 1)) == 1
    told = prompting.messages("how many orders?", prompting.within(ranked, 120))
    assert "orders.customer_id = people.id" in told[0]["content"]
    assert told[1] == {"role": "user", "content": "Question: how many orders?"}


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (pa.bool_(), "BOOLEAN"), (pa.int8(), "TINYINT"), (pa.uint32(), "BIGINT"),
        (pa.float16(), "REAL"), (pa.float64(), "DOUBLE"), (pa.string_view(), "VARCHAR"),
        (pa.binary_view(), "BYTEA"), (pa.date64(), "DATE"), (pa.time32("s"), "TIME"),
        (pa.timestamp("ns"), "TIMESTAMP"), (pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
        (pa.timestamp("s", "+01:00"), "TIMESTAMPTZ"), (pa.decimal128(10, 2), "DECIMAL(10,2)"),
        (pa.decimal256(50, -2), "DECIMAL(50,-2)"), (pa.list_(pa.string()), "VARCHAR[]"),
        (pa.list_(pa.float32(), 3), "REAL[]"), (pa.large_list(pa.date32()), "DATE[]"),
        (pa.list_(pa.list_(pa.decimal128(5, 1))), "DECIMAL(5,1)[][]"),
        (pa.list_(pa.timestamp("us")), "TIMESTAMP[]"),
        (pa.dictionary(pa.int32(), pa.string()), "VARCHAR"),
        (pa.dictionary(pa.int8(), pa.decimal128(10, 2)), "DECIMAL(10,2)"),
        (pa.dictionary(pa.int8(), pa.timestamp("us", "UTC")), "TIMESTAMPTZ"),
        (pa.list_(pa.dictionary(pa.int8(), pa.string())), "VARCHAR[]"),
        (pa.null(), "NULL"),
    ],
)  # fmt: skip
def test_names(type_: pa.DataType, name: str) -> None:
    assert sql_type(datatypes.display(type_)) == name


@pytest.mark.parametrize(
    "type_", [pa.struct([("a, b", pa.int8())]), pa.map_(pa.string(), pa.int8()), pa.binary(3)]
)
def test_a_type_that_sql_has_no_name_for_is_written_out(type_: pa.DataType) -> None:
    assert sql_type(datatypes.display(type_)) == datatypes.display(type_)


def test_lists_in_lists_have_an_end() -> None:
    assert sql_type("List(" * 50 + "Int8" + ")" * 50) == "TINYINT" + "[]" * 50
