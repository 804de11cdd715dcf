"""The section `catalogs`."""

import pytest

from tests.core.manifest.conftest import Loads, Refuses

LISTED = "catalogs:\n"


def test_a_catalog_is_loaded(loads: Loads) -> None:
    (found,) = loads(
        LISTED
        + """
  - from: postgres
    name: Shop
    description: All orders
    include: [public.*, "sales.order_?"]
    params: {pg_host: db, pg_pass: "${secrets:PASSWORD}"}
    dataset_params: {pg_db: shop}
"""
    ).catalogs
    assert (found.name, found.source, found.connector) == ("shop", "postgres", "postgres")
    assert found.params == {"pg_host": "db", "pg_pass": "${secrets:PASSWORD}", "pg_db": "shop"}
    assert "PASSWORD" not in repr(found)
    titles = ("public.a", "public.A", "sales.order_1", "sales.order_12", "publico.a")
    assert [each for each in titles if found.includes(each)] == list(titles[:3])


def test_without_include_all_is_included(loads: Loads) -> None:
    (found,) = loads(LISTED + "  - {from: duckdb, name: files}\n").catalogs
    assert found.includes("any.table") and found.access == "read"
    written = LISTED + "  - {from: mysql, name: my, access: read_write}\n"
    assert loads(written).catalogs[0].access == "read_write"
    created = LISTED + "  - {from: mysql, name: my, access: read_write_create}\n"
    assert loads(created).catalogs[0].access == "read_write_create"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{from: postgres, name: caraway}", "'caraway' belongs to the runtime"),
        ("{from: postgres, name: '\"DataFusion\"'}", "'DataFusion' belongs to the runtime"),
        ("{from: postgres, name: information_schema}", "belongs to the runtime"),
        ("{from: postgres, name: public}", "belongs to the runtime"),
        ("{from: postgres, name: runtime}", "belongs to the runtime"),
        ("{from: postgres, name: a.b}", "'a.b' is not a table name"),
        ("{from: postgres, name: 'x; DROP'}", "is not a table name"),
        ("{from: postgres, name: a, include: [orders]}", "'orders' has no schema; write"),
        (
            "{from: caraway, name: a, access: read_write_create}",
            "tables of 'caraway' are only read",
        ),
        ("{from: flightsql, name: a, access: read_write}", "tables of 'flightsql' are only read"),
        (
            "{from: glue, name: a, access: read_write_create}",
            "no tables are created in 'glue'; write `access: read_write`",
        ),
        ("{from: postgres, name: a, access: write}", "is not one of: read, read_write"),
        ("{from: postgres, name: a, acceleration: {enabled: true}}", "accelerate a view"),
        (
            "{from: oracle, name: a}",
            "no connector of catalogs 'oracle'; known: adbc, caraway, clickhouse, duckdb, "
            "flightsql, glue, iceberg, mysql, odbc, postgres, sqlite",
        ),
        ("{from: postgress, name: a}", "did you mean 'postgres'?"),
        ("{from: postgres, name: a}\n  - {from: duckdb, name: A}", "the name 'a' is taken"),
        ("{name: a}", "the key 'from' is missing"),
        ("{from: postgres}", "the key 'name' is missing"),
        ("{from: postgres, name: a, includes: [a.b]}", "did you mean 'include'?"),
    ],
)
def test_what_is_wrong_is_said(refuses: Refuses, written: str, problem: str) -> None:
    assert problem in "\n".join(refuses(f"{LISTED}  - {written}\n"))


def test_a_dataset_may_have_the_name_of_a_catalog(loads: Loads) -> None:
    manifest = loads(
        LISTED
        + """
  - {from: duckdb, name: shop}
datasets:
  - {from: "file:a", name: shop}
  - {from: "file:a", name: shop.main}
"""
    )
    assert [each.name for each in manifest.datasets] == ["shop", "shop.main"]
