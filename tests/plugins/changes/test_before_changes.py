"""Datasets with changes are empty tables before the first change."""

from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.protocols.sources import Source, SourceRequest
from caraway_core.tables import MemoryTable
from tests.kit.postgres import serving

COLUMNS = (pa.field("id", pa.int64()),)
KAFKA = {"kafka_bootstrap_servers": "localhost:1"}


def resolve(connector: str, path: str, params: dict[str, str], *columns: pa.Field) -> MemoryTable:
    source: Source = registry.SOURCES.load(connector)()
    nowhere = Path("/nowhere")
    request = SourceRequest(
        TableName("d"), connector, path, params, columns, "read", nowhere, nowhere, is_followed=True
    )
    assert source.fingerprint(request) is None
    found = source.resolve(request)
    assert isinstance(found, MemoryTable) and found.rows.num_rows == 0
    return found


@pytest.mark.parametrize(("connector", "params"), [("cdc", {}), ("debezium", KAFKA)])
def test_declared_columns_are_the_table(connector: str, params: dict[str, str]) -> None:
    assert resolve(connector, "x", params, *COLUMNS).schema == pa.schema(COLUMNS)
    with pytest.raises(DatasetError, match="columns: they come from its first events"):
        resolve(connector, "x", params)


@pytest.mark.parametrize(
    ("connector", "params", "said"),
    [
        ("cdc", {"avro_shema": "x"}, "did you mean 'avro_schema'"),
        ("cdc", {"schema_registry_url": "registry:80"}, "must be http://HOST"),
        ("debezium", {}, "kafka_bootstrap_servers is missing"),
        ("debezium", {**KAFKA, "schema_registry_url": "x"}, "must be http://HOST"),
    ],
)
def test_wrong_params_are_told_at_once(connector: str, params: dict[str, str], said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        resolve(connector, "x", params, *COLUMNS)


def test_a_database_says_its_columns() -> None:
    with serving() as server:
        server.execute("CREATE TABLE t (id int PRIMARY KEY, note text)")
        assert resolve("postgres", "t", server.params).schema.names == ["id", "note"]
        with pytest.raises(DatasetError, match=r"'public.no' is not in the database"):
            resolve("postgres", "no", server.params)


@pytest.mark.parametrize("name", sorted(registry.CHANGE_SOURCES))
def test_sources_of_changes_are_there(name: str) -> None:
    assert registry.CHANGE_SOURCES.load(name)
