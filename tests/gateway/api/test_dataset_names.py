"""The name in a path: qualified or not, it means one dataset or none."""

import pytest

from caraway_acceleration.missing import NoDatasetError
from caraway_core.errors import ExecutionError, NotFoundError
from caraway_core.ids import TableName
from caraway_gateway.api import dataset_names

KNOWN = {"orders", "sales.orders", "public.people", "Mixed"}


def look(name: TableName) -> str:
    if name not in KNOWN:
        raise NotFoundError(f"no {name}")
    return name.upper()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("orders", "orders"),
        ("ORDERS", "orders"),
        (" orders ", "orders"),
        ("public.orders", "orders"),
        ("caraway.public.orders", "orders"),
        ("CARAWAY.sales.Orders", "sales.orders"),
        ("people", "public.people"),
        ('"Mixed"', "Mixed"),
        ('public."Mixed"', "Mixed"),
    ],
)
def test_every_spelling_finds_the_dataset(name: str, found: str) -> None:
    assert dataset_names.find(name, look) == (found, found.upper())


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "a.b.c.d", "other", "sales.people", "mixed", '"ORDERS"', '"open', "a\x00b",
     "../orders", "orders;", "orders'--", "runtime.orders", "caraway_source.orders", "ü" * 500],
)  # fmt: skip
def test_no_other_name_finds_anything(name: str) -> None:
    with pytest.raises(NoDatasetError) as raised:
        dataset_names.find(name, look)
    assert raised.value.message


def test_failure_of_the_look_is_not_taken_for_a_missing_dataset() -> None:
    def broken(_: TableName) -> str:
        raise ExecutionError("broken")

    with pytest.raises(ExecutionError):
        dataset_names.find("orders", broken)
