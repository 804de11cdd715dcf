import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.tables import FileScan, FilesTable, TableSpec, ViewTable
from caraway_engine.sessions import spec_facts
from tests.kit.engine import memory

VIEW = ViewTable("SELECT 1 AS a")


def csv(rows: str) -> FilesTable:
    schema = pa.schema([("a", pa.int64())])
    return FilesTable(schema, (FileScan("csv", (rows,), schema, ".csv"),))


def test_views_are_queries() -> None:
    assert spec_facts.is_view(VIEW)
    assert not spec_facts.is_view(memory(a=[1]))
    assert not spec_facts.is_view(None)
    assert not spec_facts.is_external(None)
    assert not spec_facts.is_external(VIEW)


def test_views_are_unmeasured_where_a_table_is() -> None:
    specs: dict[TableName, TableSpec] = {
        TableName("s.t"): memory(a=[1]),
        TableName("s.v"): VIEW,
    }
    assert spec_facts.unmeasured(specs) == frozenset()
