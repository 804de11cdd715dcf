"""Names alone show which columns belong together."""

import pytest

from caraway_ai.text_to_sql import relating
from caraway_ai.text_to_sql.relating import TableRelation
from caraway_ai.tools.data_access import KnownColumn, KnownTable
from caraway_core.ids import TableName

Described = tuple[KnownTable, list[KnownColumn]]


def table(name: str, *columns: str, key: tuple[str, ...] = (), type_: str = "Int64") -> Described:
    known = KnownTable(TableName(name), "dataset", primary_key=key)
    return known, [KnownColumn(each, type_) for each in columns]


def found(*tables: Described) -> set[str]:
    return {
        f"{name}.{each.column} = {each.other}.{each.other_column}"
        for name, relations in relating.found(tables).items()
        for each in relations
    }


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ([table("customers", "id"), table("orders", "id", "customer_id")],
         {"orders.customer_id = customers.id"}),
        ([table("main.Category", "id"), table("items", "item_id", "CategoryId")],
         {"items.CategoryId = main.Category.id"}),
        ([table("categories", "id"), table("items", "category_id")],
         {"items.category_id = categories.id"}),
        ([table("boxes", "key"), table("items", "box_key")], {"items.box_key = boxes.key"}),
        ([table("customer", "c_custkey"), table("orders", "o_orderkey", "o_custkey")],
         {"orders.o_custkey = customer.c_custkey"}),
        ([table("nation", "n_nationkey", "n_regionkey"), table("region", "r_regionkey")],
         {"nation.n_regionkey = region.r_regionkey"}),
        ([table("users", "name", "uid", key=("uid",)), table("logins", "user_uid", "uid")],
         {"logins.uid = users.uid"}),
    ],
)  # fmt: skip
def test_relations(tables: list[Described], expected: set[str]) -> None:
    assert found(*tables) == expected


@pytest.mark.parametrize(
    "tables",
    [
        [],
        [table("a")],
        [table("a", "id"), table("b", "id")],
        [table("a", "id"), table("b", "b_id", "name")],
        [table("s", "id"), table("b", "id", "_id")],
        [table("es", "id"), table("b", "id", "_id")],
        # A key of two columns is none of each.
        [table("a", "x_id", "y_id", key=("x_id", "y_id")), table("b", "id", "x_id")],
        # Another type.
        [table("customers", "id", type_="Utf8"), table("orders", "id", "customer_id")],
        [table("a", "amount"), table("b", "amount")],
        [table("", "id"), table(".", "id"), table("a.", "id", "")],
    ],
)
def test_what_does_not_belong_together(tables: list[Described]) -> None:
    assert found(*tables) == set()


def test_a_declared_key_comes_before_one_that_is_guessed() -> None:
    tables = [
        table("a.users", "id"), table("b.users", "id", key=("id",)), table("logins", "user_id")
    ]  # fmt: skip
    assert found(*tables) == {"logins.user_id = b.users.id"}
    assert relating.found(tables) == {
        "logins": [TableRelation("user_id", TableName("b.users"), "id")]
    }
