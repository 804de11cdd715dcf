"""Tables as the engine builds them: the arguments of the reader, and its answers."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext

from caraway_core.tables import CsvDialect, FileScan, FilesTable, MemoryTable
from caraway_engine.scans import tables

LEFT = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "x": ["p", "q", "r"]})
RIGHT = pa.table({"a": [4.5, 5.5], "z": ["s", "t"]})
BOTH = pa.schema([("a", pa.float64()), ("x", pa.string_view()), ("z", pa.string_view())])


def scan(path: str, schema: pa.Schema, values: str | None = None) -> FileScan:
    columns = (pa.field("k", pa.int64()),) if values else ()
    return FileScan(
        format="parquet",
        paths=(path,),
        schema=schema,
        extension=".parquet",
        partition_columns=columns,
        partition_values=(values,) if values else None,
    )


@pytest.fixture
def united(tmp_path: Path) -> SessionContext:
    """Two files of different shape, as a view over one scan each."""
    for name, table in (("left", LEFT), ("right", RIGHT)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    scans = (
        scan(str(tmp_path / "left.parquet"), LEFT.schema, "1"),
        scan(str(tmp_path / "right.parquet"), RIGHT.schema, "2"),
    )
    return context(FilesTable(BOTH.append(pa.field("k", pa.int64())), scans))


def context(spec: FilesTable | MemoryTable) -> SessionContext:
    made = SessionContext(SessionConfig().with_target_partitions(2))
    made.register_table("t", tables.build_table(spec))
    return made


def plan(made: SessionContext, sql: str) -> str:
    return str(made.sql(sql).execution_plan().display_indent())


def test_a_union_answers_with_its_own_schema(united: SessionContext) -> None:
    answer = united.sql("SELECT * FROM t ORDER BY a").to_arrow_table()
    assert answer.schema.names == ["a", "x", "z", "k"]
    assert answer.column("a").to_pylist() == [1.0, 2.0, 3.0, 4.5, 5.5]
    assert answer.column("x").to_pylist() == ["p", "q", "r", None, None]
    assert answer.column("k").to_pylist() == [1, 1, 1, 2, 2]


def test_projection_filter_and_limit_reach_the_reader_of_one_scan(tmp_path: Path) -> None:
    pq.write_table(LEFT, tmp_path / "x.parquet")
    made = context(FilesTable(LEFT.schema, (scan(str(tmp_path / "x.parquet"), LEFT.schema),)))
    filtered = plan(made, "SELECT x FROM t WHERE a > 1")
    assert "predicate=a@0 > 1" in filtered and "pruning_predicate=" in filtered
    limited = plan(made, "SELECT x FROM t LIMIT 1")
    assert "projection=[x]" in limited and "limit=1" in limited


def test_projection_filter_and_limit_pass_the_union(united: SessionContext) -> None:
    filtered = plan(united, "SELECT a FROM t WHERE a > 2")
    assert filtered.count("projection=[a]") >= 2
    assert filtered.count("pruning_predicate=") == 2
    limited = plan(united, "SELECT a FROM t LIMIT 1")
    assert limited.count("limit=1") == 2, limited


def test_a_filter_on_a_folder_value_reads_no_other_file(united: SessionContext) -> None:
    pruned = plan(united, "SELECT a FROM t WHERE k = 2")
    assert "right.parquet" in pruned and "left.parquet" not in pruned


def test_struct_fields_are_read_through_a_union(tmp_path: Path) -> None:
    one = pa.table({"u": [{"n": 1}], "e": [1]})
    two = pa.table({"u": [{"n": 2}], "f": [1]})
    pq.write_table(one, tmp_path / "1.parquet")
    pq.write_table(two, tmp_path / "2.parquet")
    scans = tuple(
        scan(str(tmp_path / f"{number}.parquet"), each.schema)
        for number, each in ((1, one), (2, two))
    )
    schema = pa.unify_schemas([one.schema, two.schema])
    answer = context(FilesTable(schema, scans)).sql("SELECT u, e FROM t ORDER BY u['n']")
    assert answer.to_pydict() == {"u": [{"n": 1}, {"n": 2}], "e": [1, None]}


@pytest.mark.parametrize(
    "type_",
    [pa.timestamp("us", "UTC"), pa.list_(pa.string()), pa.dictionary(pa.int8(), pa.string())],
)
def test_a_list_of_files_holds_types_that_sql_has_no_words_for(
    type_: pa.DataType, tmp_path: Path
) -> None:
    table = pa.table({"v": pa.nulls(2, type_), "n": [1, 2]})
    for number in (1, 2):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    paths = tuple(str(tmp_path / f"{number}.parquet") for number in (1, 2))
    spec = FilesTable(table.schema, (FileScan("parquet", paths, table.schema, ".parquet"),))
    assert context(spec).sql("SELECT sum(n) AS n, count(v) AS v FROM t").to_pydict() == {
        "n": [6],
        "v": [0],
    }


def test_csv_text_is_read_into_the_types_of_the_scan(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a|b\n1|x\n")
    schema = pa.schema([("a", pa.int8()), ("b", pa.string())])
    csv = FileScan("csv", (str(tmp_path / "x.csv"),), schema, ".csv", csv=CsvDialect(delimiter="|"))
    answer = context(FilesTable(schema, (csv,))).sql("SELECT * FROM t").to_arrow_table()
    assert answer.schema.field("a").type == pa.int8()
    assert answer.to_pylist() == [{"a": 1, "b": "x"}]


def test_a_memory_table_is_its_rows(tmp_path: Path) -> None:
    rows = pa.table({"a": [1, 2]})
    made = context(MemoryTable(rows.schema, rows))
    assert made.sql("SELECT sum(a) AS s FROM t").to_pydict() == {"s": [3]}
    empty = context(MemoryTable(rows.schema, rows.slice(0, 0)))
    assert empty.sql("SELECT * FROM t").to_arrow_table().schema.names == ["a"]
