import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.tables import FileScan, FilesTable, TableSpec, ViewTable
from caraway_engine.sessions import spec_facts
from tests.kit.engine import memory

REQUIRED = pa.struct([pa.field("a", pa.int64(), nullable=False)])
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
    assert spec_facts.doubted(specs).unmeasured == frozenset()


def test_tables_and_views_are_unmasked_where_fields_of_null_have_values() -> None:
    plain = {TableName("s.t"): memory(a=[1], s=pa.array([{"a": 1}])), TableName("s.v"): VIEW}
    assert spec_facts.doubted(plain).unmasked == frozenset()
    required = memory(s=pa.array([{"a": 1}], REQUIRED))
    specs: dict[TableName, TableSpec] = {**plain, TableName("s.r"): required}
    assert spec_facts.doubted(specs).unmasked == {"r", "v"}
    scan = FileScan("arrow", ("f",), pa.schema([]), ".arrow", is_unmasked=True)
    assert spec_facts.doubted({TableName("f"): FilesTable(pa.schema([]), (scan,))}).unmasked == {
        "f"
    }
