"""Polars, Daft, Sail and Spark against a real runtime; `make test-clients` installs them."""

from collections.abc import Iterator

import pytest

from tests.kit import catalog_clients
from tests.kit.processes import child

pytestmark = pytest.mark.full
UNREAD = {
    "polars": {},
    # It reads no name mapping. Exports have ids.
    "daft": dict.fromkeys(("trips", "kinds", "common", "moves"), "carries no parquet field IDs"),
    "sail": {"kinds": "Unsupported data type"},
    "spark": {"kinds": "Spark does not support time fields"},
}
"""Tables that engines do not read, with words of their errors."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("engines")
    catalog_clients.write(folder)
    (folder / "caraway.yaml").write_text(catalog_clients.manifest())
    with child(folder, folder) as server:
        yield f"http://{server.addresses['http']}"


@pytest.mark.parametrize("engine", UNREAD)
def test_rows_are_those_of_sql(url: str, engine: str) -> None:
    if engine == "spark" and not list(catalog_clients.SPARK_JARS.glob("*.jar")):
        pytest.skip(
            "NOT TESTED: no Iceberg library for Spark; run `make test-clients` where mvn is"
        )
    found = catalog_clients.read_by(
        "iceberg_engines.py", url, (engine,), environment="engines", without=("every",)
    )
    found.check_rows(engine, unread=UNREAD[engine])
