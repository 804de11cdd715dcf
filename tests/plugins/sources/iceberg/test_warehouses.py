"""Folders of tables are catalogs."""

import shutil
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_plugins.sources.iceberg.catalog import IcebergCatalog
from tests.kit import iceberg_tables as tables
from tests.kit.engine import rows, session
from tests.kit.s3 import S3Server
from tests.plugins.sources.iceberg.judged import ROWS


def request(folder: Path, path: str = "lake", *used: str, **params: str) -> CatalogRequest:
    return CatalogRequest("c", "iceberg", path, params, folder, folder, frozenset(used))


def titles(asked: CatalogRequest) -> list[str]:
    return [each.title for each in IcebergCatalog().tables(asked)]


def add(folder: Path, place: str) -> None:
    """Put the table of the test below a folder."""
    shutil.copytree(folder / "t", folder / place)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    tables.create(tmp_path, ROWS)
    for place in ("lake/sales/orders", "lake/sales/eu/orders", "lake/own"):
        add(tmp_path, place)
    # Folders that are neither tables nor namespaces.
    for name in ("lake/_tmp/t/metadata", "lake/.trash/t/metadata", "lake/x/y=1/metadata"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


async def test_tables_of_all_levels(lake: Path) -> None:
    found = {"lake.own": "own", "sales.orders": "orders", "sales.eu.orders": "orders"}
    assert sorted(titles(request(lake))) == sorted(found)
    assert sorted(titles(request(lake, "lake/sales/"))) == ["eu.orders", "sales.orders"]
    assert titles(request(lake, (lake / "lake" / "sales" / "eu").as_uri())) == ["eu.orders"]
    there = (lake / "lake").as_uri()
    for asked, listed in (
        (request(lake, there), ListedTable("sales", "orders")),
        (request(lake), ListedTable("sales", "orders")),
        (request(lake), ListedTable("lake", "own")),
        (request(lake, "lake/sales/"), ListedTable("eu", "orders")),
        (request(lake, "lake/sales/"), ListedTable("sales", "orders")),
    ):
        table = IcebergCatalog().resolve(asked, listed)
        assert await rows(session({"t": table}), "SELECT count(*) AS n FROM t") == [{"n": 8}]


def test_only_tables_in_use_are_looked_at(lake: Path) -> None:
    for each in (lake / "lake" / "own" / "metadata").iterdir():
        each.write_bytes(b"damaged")
    marks = {
        each.title: each.mark
        for each in IcebergCatalog().tables(request(lake, "lake", "sales.orders"))
    }
    assert bool(marks.pop("sales.orders")) and set(marks.values()) == {""}
    with pytest.raises(DatasetError, match="cut or damaged"):
        IcebergCatalog().resolve(request(lake), ListedTable("lake", "own"))


def test_a_link_to_a_folder_above_ends(lake: Path) -> None:
    (lake / "lake" / "sales" / "up").symlink_to(lake / "lake")
    assert {"lake.own", "sales.orders", "sales.up.own"} <= set(titles(request(lake)))


def test_a_folder_of_the_name_of_the_catalog_is_refused(lake: Path) -> None:
    add(lake, "lake/lake/orders")
    with pytest.raises(DatasetError, match="'lake' has a folder of its own name") as caught:
        titles(request(lake))
    assert caught.value.type == "invalid"
    assert titles(request(lake, "lake/lake")) == ["lake.orders"]


def test_tables_are_not_created_there(lake: Path) -> None:
    with pytest.raises(DatasetError, match="created and dropped in catalogs that speak REST"):
        IcebergCatalog().place(request(lake), ListedTable("sales", "new"))


async def test_a_folder_in_a_bucket(lake: Path, s3_server: S3Server) -> None:
    s3_server.bucket("warehouse")
    for each in (lake / "lake").rglob("*.*"):
        if each.is_file():
            s3_server.put("warehouse", f"in/{each.relative_to(lake)}", each.read_bytes())
    asked = request(lake, "s3://warehouse/in/lake", **s3_server.params())
    assert sorted(titles(asked)) == ["lake.own", "sales.eu.orders", "sales.orders"]
    table = IcebergCatalog().resolve(asked, ListedTable("sales", "orders"))
    assert await rows(session({"t": table}), "SELECT count(*) AS n FROM t") == [{"n": 8}]
    with pytest.raises(DatasetError, match="has no folders of tables") as caught:
        titles(request(lake, "s3://warehouse/none", **s3_server.params()))
    assert caught.value.type == "not_found"
