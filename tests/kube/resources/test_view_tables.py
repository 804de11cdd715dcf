"""Tables that a view reads and that the manifest does not have."""

import pytest

from caraway_kube.resources import view_tables

CONTENT = {
    "datasets": [{"name": "orders"}, {"name": "sales.items"}, {"name": "Cap"}],
    "views": [{"name": "daily"}],
    "catalogs": [{"name": "lake", "from": "x"}],
}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM orders JOIN daily ON true", []),
        ('SELECT * FROM ORDERS, cap, "Cap"', []),
        ("SELECT * FROM public.orders, spice.public.daily, sales.items", []),
        ("SELECT * FROM no_such_table", ["no_such_table"]),
        ("SELECT * FROM orders JOIN Gone ON true, orders o", ["Gone"]),
        ("SELECT * FROM gone JOIN gone g ON true", ["gone"]),
        ("SELECT * FROM public.gone, caraway.public.lost", ["public.gone", "caraway.public.lost"]),
        ("SELECT * FROM sales.gone", ["sales.gone"]),
        ("SELECT 1 WHERE 1 IN (SELECT a FROM gone)", ["gone"]),
        ("SELECT * FROM orders UNION SELECT * FROM gone", ["gone"]),
        # Only a scheduler knows these.
        ("SELECT * FROM lake.raw.events, runtime.task_history, other.t", []),
        ("SELECT * FROM information_schema.tables", []),
        # These names are not tables of a manifest.
        ("WITH c AS (SELECT 1), d AS (SELECT * FROM c) SELECT * FROM d", []),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r", []),
        ("SELECT * FROM vector_search(orders, 'x'), UNNEST([1]), generate_series(1, 2)", []),
        ("SELECT * FROM (VALUES (1)) t (x), LATERAL (SELECT * FROM orders) o", []),
    ],
)
def test_names_that_can_be_nothing_else_are_found(sql: str, expected: list[str]) -> None:
    assert sorted(view_tables.unknown(sql, CONTENT)) == sorted(expected)


def test_a_deep_query_is_read() -> None:
    sql = "SELECT * FROM gone" + " UNION ALL SELECT * FROM orders" * 45
    assert list(view_tables.unknown(sql, CONTENT)) == ["gone"]
