"""Statements written anew: only what they name changes, and only where that is certain."""

import pytest

from caraway_core.ids import TableName
from caraway_scheduler.acceleration.texts import insertion, over_sources

NAMES = frozenset(map(TableName, ("orders", "sales.orders", "Big")))


@pytest.mark.parametrize(
    ("sql", "dataset", "rewritten"),
    [
        ("INSERT INTO orders VALUES (1)", "orders", '"caraway_source"."orders" VALUES (1)'),
        ("insert into ORDERS(a) select 1", "orders", '"caraway_source"."orders"(a) select 1'),
        ('INSERT INTO "Big" VALUES (1)', "Big", '"caraway_source"."Big" VALUES (1)'),
        (
            "/* x */ -- y\n INSERT /**/ INTO sales . orders SELECT * FROM orders",
            "sales.orders",
            '"caraway_source"."sales__orders" SELECT * FROM orders',
        ),
        ("INSERT INTO public.orders VALUES (1)", "orders", '"caraway_source"."orders" VALUES (1)'),
        (
            "INSERT INTO caraway.public.orders VALUES (1)",
            "orders",
            '"caraway_source"."orders" VALUES (1)',
        ),
    ],
)
def test_an_insert_goes_to_the_source(sql: str, dataset: str, rewritten: str) -> None:
    found = insertion(sql, NAMES)
    assert found is not None
    assert found.dataset == dataset
    assert found.sql.endswith("INTO " + rewritten) or found.sql.endswith("into " + rewritten)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO others VALUES (1)",
        "SELECT 'INSERT INTO orders VALUES (1)'",
        "EXPLAIN INSERT INTO orders VALUES (1)",
        'INSERT INTO "orders.x" VALUES (1)',
        "DELETE FROM orders",
        "",
    ],
)
def test_all_else_stays_as_it_is(sql: str) -> None:
    assert insertion(sql, NAMES) is None


SOURCE = 'orders" AS (SELECT * FROM "caraway_source"."orders")'


@pytest.mark.parametrize(
    ("sql", "rewritten"),
    [
        ("SELECT * FROM orders", f'WITH "{SOURCE} SELECT * FROM orders'),
        (
            "-- why\nWITH a AS (SELECT 1) SELECT * FROM orders, a",
            f'-- why\nWITH "{SOURCE}, a AS (SELECT 1) SELECT * FROM orders, a',
        ),
        (
            "WITH RECURSIVE a AS (SELECT 1) SELECT * FROM orders",
            f'WITH RECURSIVE "{SOURCE}, a AS (SELECT 1) SELECT * FROM orders',
        ),
        ("SELECT * FROM sales.orders", None),
        ("SELECT * FROM others", None),
        ("EXPLAIN SELECT * FROM orders", None),
    ],
)
def test_a_query_is_asked_of_the_sources(sql: str, rewritten: str | None) -> None:
    assert over_sources(sql, NAMES) == rewritten


def test_views_of_datasets_are_asked_of_the_sources_too() -> None:
    views = {
        TableName("late"): "SELECT * FROM orders WHERE id > 5",
        TableName("latest"): "WITH a AS (SELECT 1) SELECT * FROM late, a",
        TableName("other"): "SELECT 1 FROM others",
        TableName("turning"): "SELECT * FROM turning",
    }
    made = over_sources("SELECT * FROM latest, other, turning", NAMES, views)
    assert made == (
        f'WITH "{SOURCE}, "late" AS (SELECT * FROM orders WHERE id > 5), '
        '"latest" AS (WITH a AS (SELECT 1) SELECT * FROM late, a) '
        "SELECT * FROM latest, other, turning"
    )
    assert over_sources("SELECT * FROM other", NAMES, views) is None
