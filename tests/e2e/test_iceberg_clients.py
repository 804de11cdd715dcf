"""PyIceberg and DuckDB against a real runtime; `make test-clients` installs them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.differential import tpc
from tests.differential.tpc_answers import is_same
from tests.kit import catalog_clients
from tests.kit.catalog_clients import KEY, Found
from tests.kit.processes import child

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    folder = tmp_path_factory.mktemp("iceberg")
    catalog_clients.write(folder)
    (folder / "caraway.yaml").write_text(catalog_clients.manifest())
    with child(folder, folder) as server:
        url = f"http://{server.addresses['http']}"
        return catalog_clients.read_by(
            "iceberg_client.py", url, ("duckdb", "pyiceberg"),
            earlier=catalog_clients.moved(url, folder),
        )  # fmt: skip


def test_rows_are_those_of_sql(found: Found) -> None:
    found.check_rows("duckdb", "pyiceberg")


def test_names_and_errors_are_those_of_the_catalog(found: Found) -> None:
    said = found.said
    for client in ("pyiceberg", "duckdb"):
        assert said[client, "tables"] == list(catalog_clients.NAMES)
        assert said[client, "earlier"] == [{"a": 1}]
    assert said["pyiceberg", "namespaces"] == [["public"]]
    assert said["pyiceberg", "views"] == ["dear"]
    assert said["pyiceberg", "exists"] == [True, False]
    assert said["pyiceberg", "planned fares"] == [["fare"], 3]
    assert "there is no table 'none'" in said["pyiceberg", "missing"]
    assert said["pyiceberg", "unplanned"].startswith("ValueError: Unrecognized filesystem type")
    assert "the API key is missing or unknown" in said["pyiceberg", "key"]
    assert "caraway://people/rows-are-not-in-files" in said["duckdb", "unplanned"]
    assert "does not exist" in said["duckdb", "missing"]
    assert not said["pyiceberg", "write"].startswith("no error")


def test_answers_of_tpch_by_duckdb_are_those_of_sql(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    data = tpc.tpch(request.config.cache.mkdir("caraway-tpc"), "0.1")
    texts = tpc.tpch_texts()
    with child(tmp_path, data.manifest()) as server:
        url = f"http://{server.addresses['http']}"
        wanted = {"url": url, "key": KEY, "s3": None, "folder": str(tmp_path), "statements": texts}
        catalog_clients.run("iceberg_client.py", wanted)
        for name, text in texts.items():
            ours = catalog_clients.sql(url, text)
            theirs = pq.read_table(tmp_path / f"{name}.parquet")
            assert ours.num_rows == theirs.num_rows > 0, name
            for number, column in enumerate(ours.columns):
                scale = getattr(column.type, "scale", None)
                pairs = zip(column.to_pylist(), theirs.column(number).to_pylist(), strict=True)
                assert all(is_same(*pair, scale) for pair in pairs), (name, number)
