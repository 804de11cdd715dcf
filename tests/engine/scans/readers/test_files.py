"""Tables over files of several shapes, held against the rows that were written."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caraway_core.tables import CsvDialect, FileFormat, FileScan, FilesTable
from caraway_engine.scans.readers import files

Rows = list[dict[str, Any]]


def parquet(folder: Path, name: str, rows: pa.Table, **more: Any) -> FileScan:
    path = folder / f"{name}.parquet"
    pq.write_table(rows, path)
    return FileScan("parquet", (str(path),), rows.schema, ".parquet", **more)


def csv(folder: Path, text: str, schema: pa.Schema, dialect: CsvDialect, **more: Any) -> FileScan:
    path = folder / "rows.csv"
    path.write_text(text)
    return FileScan("csv", (str(path),), schema, ".csv", csv=dialect, **more)


def read(schema: pa.Schema, *scans: FileScan, sql: str = "SELECT * FROM t") -> pa.Table:
    context = SessionContext(SessionConfig().with_target_partitions(2))
    context.register_table("t", files.read(FilesTable(schema, scans)))
    return context.sql(sql).to_arrow_table()


def rows(schema: pa.Schema, *scans: FileScan, sql: str = "SELECT * FROM t") -> Rows:
    found: Rows = read(schema, *scans, sql=sql).to_pylist()
    return found


def test_one_scan_of_the_same_columns_is_read_as_it_is(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    assert rows(table.schema, parquet(tmp_path, "t", table)) == table.to_pylist()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (pa.schema([("b", pa.string()), ("a", pa.int64())]), [{"b": "x", "a": 1}]),
        (pa.schema([("a", pa.int64())]), [{"a": 1}]),
        (pa.schema([("a", pa.float64())]), [{"a": 1.0}]),
        (pa.schema([("a", pa.string())]), [{"a": "1"}]),
        (pa.schema([("c", pa.int64()), ("a", pa.int64())]), [{"c": None, "a": 1}]),
        (pa.schema([("A", pa.int64())]), [{"A": None}]),
        (pa.schema([("c", pa.list_(pa.string()))]), [{"c": None}]),
        (pa.schema([("c", pa.struct([("d", pa.int8())]))]), [{"c": None}]),
    ],
)
def test_columns_are_in_the_order_and_of_the_types_of_the_table(
    tmp_path: Path, wanted: pa.Schema, found: Rows
) -> None:
    table = pa.table({"a": [1], "b": ["x"]})
    answer = read(wanted, parquet(tmp_path, "t", table))
    assert answer.to_pylist() == found
    assert answer.schema.types == wanted.types


ODD_NAMES = [
    "A", "a b", 'a"b', 'a""b', "a.b", '"a"', "select", "é", "a'b", "a;b", "a--b", "a\nb", "1", "*",
    "🦆", "$1", "%s",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_columns_of_any_name_are_read(tmp_path: Path, name: str) -> None:
    table = pa.table({name: [1, 2], "other": [3, 4]})
    # Another order: the columns are selected by their names.
    wanted = pa.schema([("other", pa.int64()), (name, pa.float64())])
    assert rows(wanted, parquet(tmp_path, "t", table)) == [
        {"other": 3, name: 1.0}, {"other": 4, name: 2.0},
    ]  # fmt: skip


def test_files_of_several_shapes_are_one_table(tmp_path: Path) -> None:
    left = parquet(tmp_path, "l", pa.table({"a": [1], "b": ["x"]}))
    right = parquet(tmp_path, "r", pa.table({"c": [True], "a": [2.5]}))
    none = parquet(tmp_path, "n", pa.table({"z": [0]}))
    wanted = pa.schema([("a", pa.float64()), ("b", pa.string()), ("c", pa.bool_())])
    found = rows(wanted, left, right, none, sql="SELECT * FROM t ORDER BY a")
    assert found == [
        {"a": 1.0, "b": "x", "c": None},
        {"a": 2.5, "b": None, "c": True},
        {"a": None, "b": None, "c": None},
    ]


@pytest.mark.parametrize(
    ("value", "type_", "read_"),
    [
        ("7", pa.int64(), 7),
        ("7", pa.string(), "7"),
        ("007", pa.string(), "007"),
        (None, pa.int64(), None),
        (None, pa.string(), None),
        ("", pa.string(), ""),
        ("2024-01-31", pa.date32(), dt.date(2024, 1, 31)),
        ("x'; DROP TABLE t --", pa.string(), "x'; DROP TABLE t --"),
        ("true", pa.bool_(), True),
    ],
)
def test_a_value_of_a_folder_is_a_column_of_its_type(
    tmp_path: Path, value: str | None, type_: pa.DataType, read_: object
) -> None:
    field = pa.field("k", type_)
    table = pa.table({"a": [1, 2]})
    scan = parquet(tmp_path, "t", table, partition_columns=(field,), partition_values=(value,))
    answer = read(table.schema.append(field), scan)
    assert answer.column("k").to_pylist() == [read_, read_]
    assert answer.schema.field("k").type == type_


def test_a_value_of_a_folder_hides_a_column_of_the_file(tmp_path: Path) -> None:
    field = pa.field("k", pa.int64())
    table = pa.table({"k": [1, 2], "a": [3, 4]})
    scan = parquet(tmp_path, "t", table, partition_columns=(field,), partition_values=("9",))
    wanted = pa.schema([("a", pa.int64()), field])
    assert rows(wanted, scan) == [{"a": 3, "k": 9}, {"a": 4, "k": 9}]


def test_scans_with_different_values_of_folders_are_told_apart(tmp_path: Path) -> None:
    field = pa.field("k", pa.string())
    table = pa.table({"a": [1]})
    scans = [
        parquet(tmp_path, str(number), table, partition_columns=(field,), partition_values=(value,))
        for number, value in enumerate(["x", "y", None])
    ]
    wanted = table.schema.append(field)
    found = rows(wanted, *scans, sql="SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY k")
    assert found == [{"k": "x", "n": 1}, {"k": "y", "n": 1}, {"k": None, "n": 1}]
    assert rows(wanted, *scans, sql="SELECT a FROM t WHERE k = 'y'") == [{"a": 1}]
    assert rows(wanted, *scans, sql="SELECT a FROM t WHERE k IS NULL") == [{"a": 1}]


@pytest.mark.parametrize(
    ("regex", "text", "found"),
    [
        ("^NA$", "a,b\n1,NA\nNA,x\n", [{"a": 1, "b": None}, {"a": None, "b": "x"}]),
        ("^(NA|-)$", "a,b\nNA,-\n2,NAN\n", [{"a": None, "b": None}, {"a": 2, "b": "NAN"}]),
        ("^$", "a,b\n,x\n3,\n", [{"a": None, "b": "x"}, {"a": 3, "b": None}]),
        ("[0-9]", "a,b\n5,x\n6,y7\n", [{"a": None, "b": "x"}, {"a": None, "b": None}]),
        ("^'$", "a,b\n5,'\n6,''\n", [{"a": 5, "b": None}, {"a": 6, "b": "''"}]),
        ("", "a,b\n5,x\n", [{"a": 5, "b": "x"}]),
    ],
)
def test_a_pattern_says_what_is_null(tmp_path: Path, regex: str, text: str, found: Rows) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    dialect = CsvDialect(null_regex=regex) if regex else CsvDialect()
    assert rows(schema, csv(tmp_path, text, schema, dialect)) == found


def test_a_pattern_leaves_values_of_folders_alone(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    field = pa.field("k", pa.string())
    scan = csv(
        tmp_path, "a\n1\nNA\n", schema, CsvDialect(null_regex="^NA$"),
        partition_columns=(field,), partition_values=("NA",),
    )  # fmt: skip
    assert rows(schema.append(field), scan) == [{"a": 1, "k": "NA"}, {"a": None, "k": "NA"}]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_pattern_applies_to_columns_of_any_name(tmp_path: Path, name: str) -> None:
    schema = pa.schema([(name, pa.int64())])
    quoted = '"' + name.replace('"', '""') + '"'
    scan = csv(tmp_path, f"{quoted}\n1\nNA\n", schema, CsvDialect(null_regex="^NA$"))
    assert rows(schema, scan) == [{name: 1}, {name: None}]


def test_what_a_value_cannot_become_is_an_error(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    scan = csv(tmp_path, "a\nx\n", schema, CsvDialect(null_regex="^NA$"))
    with pytest.raises(Exception, match="Cannot cast string 'x' to value of Int64"):
        rows(schema, scan)


VALUES = st.lists(st.none() | st.integers(-9, 9), min_size=1, max_size=6)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1), min_size=1, max_size=4)
)
def test_rows_are_those_of_all_files(tmp_path: Path, tables: list[dict[str, list[Any]]]) -> None:
    scans, wanted = [], []
    for number, columns in enumerate(tables):
        length = min(map(len, columns.values()))
        table = pa.table({name: pa.array(each[:length], pa.int64())
                          for name, each in columns.items()})  # fmt: skip
        scans.append(parquet(tmp_path, str(number), table))
        wanted += [{name: row.get(name) for name in "abc"} for row in table.to_pylist()]
    schema = pa.schema([(name, pa.int64()) for name in "abc"])
    found = rows(schema, *scans)
    assert sorted(map(str, found)) == sorted(map(str, wanted))
    filtered = rows(schema, *scans, sql="SELECT a FROM t WHERE b > 0 ORDER BY a")
    assert sorted(str(row["a"]) for row in filtered) == sorted(
        str(row["a"]) for row in wanted if row["b"] is not None and row["b"] > 0
    )


@pytest.mark.parametrize(
    ("format_", "type_", "is_wrong"),
    [
        ("parquet", pa.float64(), True),
        ("parquet", pa.float32(), True),
        ("parquet", pa.float16(), True),
        ("parquet", pa.list_(pa.float64()), True),
        ("parquet", pa.struct([("a", pa.struct([("b", pa.float64())]))]), True),
        ("parquet", pa.map_(pa.string(), pa.list_(pa.float32())), True),
        ("parquet", pa.int64(), False),
        ("parquet", pa.decimal128(5, 2), False),
        ("parquet", pa.list_(pa.struct([("a", pa.string())])), False),
        ("csv", pa.float64(), False),
        ("json", pa.float64(), False),
    ],
)
def test_statistics_of_parquet_files_say_nothing_of_nan(
    format_: FileFormat, type_: pa.DataType, is_wrong: bool
) -> None:
    schema = pa.schema([("i", pa.int64()), ("x", type_)])
    scan = FileScan(format_, ("/x",), schema, f".{format_}")
    assert files.is_measured_wrongly(FilesTable(schema, (scan,))) is is_wrong
    others = FileScan("csv", ("/y",), schema, ".csv")
    assert files.is_measured_wrongly(FilesTable(schema, (others, scan))) is is_wrong
