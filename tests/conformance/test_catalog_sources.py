"""Requirements for every source of catalogs. One joins with a class in `catalog_kinds`."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.loading import registry
from caraway_core.loading.declarations import CatalogConnector
from caraway_core.protocols.catalog_sources import CatalogSource, ListedTable
from tests.conformance.catalog_kinds import CATALOGS, SCHEMA, CatalogKind
from tests.kit import (
    caraway_tables,
    glue_server,
    hive_server,
    iceberg_catalog,
    mariadb,
)
from tests.kit.caraway_tables import ServedRuntime
from tests.kit.engine import rows, session
from tests.kit.glue_server import GlueServer
from tests.kit.hive_server import HiveServer
from tests.kit.iceberg_catalog import IcebergCatalogServer
from tests.kit.mariadb import Mariadb

PINNED = frozenset({"glue", "iceberg"})
"""Sources whose marks change with the rows of a table that is in use."""
LOWERED = frozenset({"iceberg in hive"})
"""Kinds that keep names in lower case."""


def _connector(name: str) -> str:
    return name.partition(" ")[0]


def source(name: str) -> CatalogSource:
    made: CatalogSource = registry.CATALOG_SOURCES.load(_connector(name))()
    return made


def listed(kind: CatalogKind, name: str) -> dict[str, ListedTable]:
    found = source(name).tables(kind.request())
    return {each.name: each for each in found if each.schema == kind.schema}


@pytest.fixture
def iceberg_server(tmp_path: Path) -> Iterator[IcebergCatalogServer]:
    with iceberg_catalog.serving(tmp_path) as server:
        yield server


@pytest.fixture
def glue() -> Iterator[GlueServer]:
    with glue_server.serving() as server:
        yield server


@pytest.fixture(scope="session")
def hive() -> Iterator[HiveServer]:
    with hive_server.serving() as server:
        yield server


@pytest.fixture
def runtime() -> Iterator[ServedRuntime]:
    with caraway_tables.runtime() as made:
        yield made


@pytest.fixture(params=sorted(CATALOGS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def mariadb_server() -> Iterator[Mariadb]:
    with mariadb.serving() as server:
        server.execute(
            "CREATE USER reader@localhost IDENTIFIED BY 'hunter2'",
            "GRANT SELECT, SHOW VIEW ON *.* TO reader@localhost",
        )
        yield server


@pytest.fixture
def kind(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> CatalogKind:
    made = CATALOGS[name](tmp_path, request)
    if made.schema == SCHEMA:
        made.run(f'DROP SCHEMA IF EXISTS "{SCHEMA}" CASCADE', f'CREATE SCHEMA "{SCHEMA}"')
    made.run(
        f'CREATE TABLE "{made.schema}"."Select ${{x}}; --" (id int, "Group" text)',
        f'INSERT INTO "{made.schema}"."Select ${{x}}; --" VALUES (1, \'a\'), (2, NULL)',
        f'CREATE VIEW "{made.schema}".v AS SELECT id FROM "{made.schema}"."Select ${{x}}; --"',
    )
    return made


def test_every_source_has_a_class_here() -> None:
    assert set(map(_connector, CATALOGS)) == set(registry.CATALOG_SOURCES)


def test_it_declares_itself(name: str) -> None:
    declared = registry.catalog_connector(_connector(name))
    assert type(registry.CATALOG_SOURCES.declared(_connector(name))) is CatalogConnector
    assert declared.params and declared.poll_s > 0


async def test_listed_tables_are_read(name: str, kind: CatalogKind) -> None:
    found = listed(kind, name)
    odd = "Select ${x}; --"
    odd = odd.lower() if name in LOWERED else odd
    assert set(found) == {odd, "v"}
    specs = {title: source(name).resolve(kind.request(), each) for title, each in found.items()}
    assert pickle.loads(pickle.dumps(specs)) == specs
    assert "hunter2" not in repr((specs, kind.request()))
    over = session({"c.s.t": specs[odd], "c.s.v": specs["v"]})
    sql = 'SELECT "Group" FROM c.s.t WHERE id = 1 AND id IN (SELECT id FROM c.s.v)'
    assert await rows(over, sql) == [{"Group": "a"}]


def test_marks_change_with_the_columns(name: str, kind: CatalogKind) -> None:
    kind.run(f'CREATE TABLE "{kind.schema}".t (a int)')
    first = listed(kind, name)["t"]
    kind.run(f'INSERT INTO "{kind.schema}".t VALUES (1)')
    assert (listed(kind, name)["t"] != first) == (_connector(name) in PINNED)
    kind.run(f'ALTER TABLE "{kind.schema}".t ADD COLUMN b int')
    assert listed(kind, name)["t"].mark != first.mark
    kind.run(f'DROP TABLE "{kind.schema}".t')
    assert "t" not in listed(kind, name)
    with pytest.raises(DatasetError) as caught:
        source(name).resolve(kind.request(), first)
    assert caught.value.type == "not_found"


def test_its_fingerprint_changes_with_the_tables(name: str, kind: CatalogKind) -> None:
    before = source(name).fingerprint(kind.request())
    kind.run(f'CREATE TABLE "{kind.schema}".more (a int)')
    after = source(name).fingerprint(kind.request())
    assert before is None or before != after


def test_a_place_that_is_not_there_says_so(name: str, kind: CatalogKind) -> None:
    with pytest.raises(DatasetError) as caught:
        list(source(name).tables(kind.absent()))
    assert caught.value.type == "not_found"
    assert "hunter2" not in caught.value.message
