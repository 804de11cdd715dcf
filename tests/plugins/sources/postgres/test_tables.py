"""PostgreSQL databases as catalogs: their lists, and what these leave out."""

from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_plugins.sources.postgres.tables import PostgresCatalog
from tests.kit.postgres import Server

HERE = Path()


def asked(postgres: Server, path: str = "", **params: str) -> CatalogRequest:
    return CatalogRequest("pg", "postgres", path, {**postgres.params, **params}, HERE, HERE)


def listed(postgres: Server, schema: str, **params: str) -> dict[str, str]:
    found = PostgresCatalog().tables(asked(postgres, **params))
    return {each.name: each.mark for each in found if each.schema == schema}


def test_all_kinds_of_tables_are_listed(postgres: Server) -> None:
    postgres.execute(
        'CREATE SCHEMA "Kinds"',
        'CREATE TABLE "Kinds".t (a int)',
        'CREATE TABLE "Kinds"."Ö;--" (a int)',
        'CREATE VIEW "Kinds".v AS SELECT 1 AS a',
        'CREATE MATERIALIZED VIEW "Kinds".m AS SELECT 1 AS a',
        'CREATE TABLE "Kinds".p (a int) PARTITION BY LIST (a)',
        'CREATE TABLE "Kinds".none ()',
        'CREATE INDEX i ON "Kinds".t (a)',
        'CREATE SEQUENCE "Kinds".s',
    )
    assert set(listed(postgres, "Kinds")) == {"t", "Ö;--", "v", "m", "p", "none"}
    schemas = {each.schema for each in PostgresCatalog().tables(asked(postgres))}
    assert not {"information_schema", "pg_catalog", "pg_toast"} & schemas


def test_marks_change_with_the_columns_alone(postgres: Server) -> None:
    postgres.execute("CREATE SCHEMA marks", "CREATE TABLE marks.t (a int, b text)")
    before = listed(postgres, "marks")["t"]
    postgres.execute("INSERT INTO marks.t VALUES (1, 'x')", "ANALYZE marks.t")
    assert listed(postgres, "marks")["t"] == before
    seen = {before}
    for change in ("ADD c int", "DROP a", "ALTER b TYPE varchar(3)", "RENAME b TO d"):
        postgres.execute(f"ALTER TABLE marks.t {change}")
        seen.add(listed(postgres, "marks")["t"])
    assert len(seen) == 5


def test_only_what_the_user_may_read_is_listed(postgres: Server) -> None:
    postgres.execute(
        "CREATE ROLE reader LOGIN",
        "CREATE SCHEMA open",
        "CREATE SCHEMA shut",
        "CREATE TABLE open.granted (a int)",
        "CREATE TABLE open.columns (a int, b int)",
        "CREATE TABLE open.refused (a int)",
        "CREATE TABLE shut.t (a int)",
        "GRANT USAGE ON SCHEMA open TO reader",
        "GRANT SELECT ON open.granted, shut.t TO reader",
        "GRANT SELECT (a) ON open.columns TO reader",
    )
    assert set(listed(postgres, "open", pg_user="reader")) == {"granted", "columns"}
    assert not listed(postgres, "shut", pg_user="reader")


def test_a_table_is_described_by_its_listed_name(postgres: Server) -> None:
    postgres.execute('CREATE SCHEMA "A b"', 'CREATE TABLE "A b"."${x}" ("Y" int)')
    spec = PostgresCatalog().resolve(asked(postgres), ListedTable("A b", "${x}"))
    assert spec.schema.names == ["Y"]
    with pytest.raises(DatasetError) as caught:
        PostgresCatalog().resolve(asked(postgres), ListedTable("A b", "gone"))
    assert caught.value.type == "not_found"


def test_what_is_wrong_is_said_without_the_password(postgres: Server) -> None:
    def refused(path: str = "", **params: str) -> DatasetError:
        with pytest.raises(DatasetError) as caught:
            list(PostgresCatalog().tables(asked(postgres, path, **params)))
        assert "hidden" not in caught.value.message and "public.*" not in caught.value.message
        return caught.value

    assert refused(path="shop").type == "invalid"
    assert refused(pg_user="nobody", pg_pass="hidden").type == "auth"
    assert refused(pg_db="none", pg_pass="hidden").type == "not_found"
    assert refused(pg_host="/nowhere", pg_pass="hidden").type == "unavailable"
    assert refused(pg_connection_string="host='x password=hidden").type == "invalid"
