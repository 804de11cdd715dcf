"""Files of every format as the engine reads them, whatever their names and columns are."""

import datetime as dt
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext

from caraway_core.tables import CsvDialect, FileScan, StoreSpec
from caraway_engine.scans import scans

ODD = ("plain", "a b", "50%25", "it's", "ü漢", "a+b&c=d", "[x]", "star*", "q?", "#h", "semi;colon")
COLUMNS = {"a": pa.int64(), 'q"uote': pa.string(), "it's": pa.float64(), "Ünï ÇODE": pa.bool_()}
SCHEMA = pa.schema(list(COLUMNS.items()))
ROWS: list[dict[str, Any]] = [
    {"a": 1, 'q"uote': "x", "it's": 1.5, "Ünï ÇODE": True},
    {"a": 2**63 - 1, 'q"uote': "ä'\"", "it's": -0.0, "Ünï ÇODE": None},
    {"a": None, 'q"uote': None, "it's": None, "Ünï ÇODE": False},
]


@pytest.fixture
def context() -> SessionContext:
    return SessionContext(SessionConfig().with_target_partitions(2))


def scan(format_: Any, paths: list[Path], schema: pa.Schema = SCHEMA, **more: Any) -> FileScan:
    texts = tuple(f"{path}/" if path.is_dir() else str(path) for path in paths)
    return FileScan(format_, texts, schema, more.pop("extension", f".{format_}"), **more)


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> Path:
    table = pa.Table.from_pylist(rows, schema)
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path)
        case ".arrow":
            with pa.ipc.new_file(path, schema) as writer:
                writer.write_table(table)
        case ".json":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(context: SessionContext, of: FileScan) -> list[dict[str, Any]]:
    frame = scans.add(context, "t", of)
    assert pa.schema(frame.schema()).names == of.schema.names
    return sorted(frame.to_pylist(), key=lambda row: str(list(row.values())))


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(list(row.values())))


@pytest.mark.parametrize("format_", ["parquet", "json", "arrow"])
def test_a_file_a_folder_and_a_list_have_the_same_rows(
    context: SessionContext, tmp_path: Path, format_: str
) -> None:
    one = write(tmp_path / f"one.{format_}", ROWS[:2])
    two = write(tmp_path / f"two.{format_}", ROWS[2:])
    for paths in ([tmp_path], [one, two]):
        assert read(context, scan(format_, paths)) == ordered(ROWS)
        context = SessionContext()
    assert read(context, scan(format_, [one])) == ordered(ROWS[:2])


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("count", [1, 2])
def test_a_file_of_any_name_is_that_file(
    context: SessionContext, tmp_path: Path, name: str, count: int
) -> None:
    paths = [write(tmp_path / f"{name}{number}.json", ROWS[:1]) for number in range(count)]
    write(tmp_path / "starfish.json", ROWS)  # A glob of `star*` would find it.
    write(tmp_path / "x.json", ROWS)
    assert read(context, scan("json", paths)) == ROWS[:1] * count


def test_a_list_of_json_arrays_and_compressed_lines(
    context: SessionContext, tmp_path: Path
) -> None:
    path = tmp_path / "array.json"
    path.write_text(json.dumps(ROWS))
    assert read(context, scan("json", [path], json_array=True)) == ordered(ROWS)
    packed = tmp_path / "lines.json.gz"
    packed.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in ROWS).encode()))
    more = {"compression": "gzip", "extension": ".json.gz"}
    assert read(SessionContext(), scan("json", [packed], **more)) == ordered(ROWS)
    other = tmp_path / "other.json.gz"
    other.write_bytes(packed.read_bytes())
    assert read(SessionContext(), scan("json", [packed, other], **more)) == ordered(ROWS * 2)


@pytest.mark.parametrize(
    ("type_", "value", "found"),
    [
        (pa.int8(), -128, -128), (pa.uint8(), 255, 255), (pa.int16(), -(2**15), -(2**15)),
        (pa.uint16(), 65535, 65535), (pa.int32(), 2**31 - 1, 2**31 - 1),
        (pa.uint32(), 2**32 - 1, 2**32 - 1), (pa.int64(), -(2**63), -(2**63)),
        (pa.uint64(), 2**64 - 1, 2**64 - 1), (pa.float32(), 0.5, 0.5), (pa.bool_(), True, True),
        (pa.string(), "", ""), (pa.string_view(), "x", "x"),
        (pa.date32(), "2024-02-29", dt.date(2024, 2, 29)),
        (pa.timestamp("s"), "2024-02-29T01:02:03", dt.datetime(2024, 2, 29, 1, 2, 3)),
        (pa.timestamp("us"), "2024-02-29T01:02:03.000004", dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
        (pa.decimal128(10, 2), "1.50", Decimal("1.50")),
        (pa.list_(pa.int64()), [1, None], [1, None]),
        (pa.struct([("x", pa.int8())]), {"x": 1}, {"x": 1}),
    ],
)  # fmt: skip
def test_a_list_of_files_keeps_the_types_of_the_scan(
    context: SessionContext, tmp_path: Path, type_: pa.DataType, value: Any, found: Any
) -> None:
    schema = pa.schema([("c", type_)])
    paths = [tmp_path / f"{number}.json" for number in range(2)]
    for path in paths:
        path.write_text(json.dumps({"c": value}) + "\n" + json.dumps({"c": None}) + "\n")
    frame = scans.add(context, "t", scan("json", paths, schema))
    assert pa.schema(frame.schema()).field("c").type == type_
    values = [row["c"] for row in frame.to_pylist()]
    assert sorted(map(str, values)) == sorted(map(str, [found, None] * 2))


@pytest.mark.parametrize(
    ("text", "dialect", "rows"),
    [
        ("a,b\n1,x\n", CsvDialect(), [(1, "x")]),
        ("1,x\n2,\n", CsvDialect(has_header=False), [(1, "x"), (2, None)]),
        ("a;b\n1;'x;y'\n", CsvDialect(delimiter=";", quote="'"), [(1, "x;y")]),
        ('a,b\n1,"x\ny"\n', CsvDialect(newlines_in_values=True), [(1, "x\ny")]),
        ("a,b\n# no row\n1,x\n", CsvDialect(comment="#"), [(1, "x")]),
        ('a,b\n1,"x\\"y"\n', CsvDialect(escape="\\"), [(1, 'x"y')]),
        ('a,b\n1,"x""y"\n', CsvDialect(), [(1, 'x"y')]),
        ("a,b\n", CsvDialect(), []),
    ],
)
def test_a_dialect_of_csv_is_read_as_it_says(
    context: SessionContext, tmp_path: Path, text: str, dialect: CsvDialect, rows: list[Any]
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    found = read(context, scan("csv", [path], schema, csv=dialect))
    assert [(row["a"], row["b"] or None) for row in found] == rows


def test_partitions_come_from_the_folders(context: SessionContext, tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    for key in ("x", "y z"):
        folder = tmp_path / f"k={key}"
        folder.mkdir()
        write(folder / "t.parquet", [{"a": 1}], schema)
    columns = (pa.field("k", pa.string()),)
    frame = scans.add(context, "t", scan("parquet", [tmp_path], schema, partition_columns=columns))
    assert sorted(row["k"] for row in frame.to_pylist()) == ["x", "y z"]
    given = scan("parquet", [tmp_path / "k=x" / "t.parquet"], schema, partition_columns=columns,
                 partition_values=("x",))  # fmt: skip
    frame = scans.add(SessionContext(), "t", given)
    assert frame.to_pylist() == [{"a": 1}], "values that are given are added by others"


@pytest.mark.parametrize(
    ("key", "url"),
    [
        ("a/b.json", "s3://alias/a/b.json"),
        ("s3://alias/a/b.json", "s3://alias/a/b.json"),
        ("k=1/ü.json", "s3://alias/k=1/%C3%BC.json"),
        ("50%25/a b.json", "s3://alias/50%2525/a%20b.json"),
        ("a?b#c*[d]", "s3://alias/a%3Fb%23c%2A%5Bd%5D"),
    ],
)
def test_a_key_of_a_store_is_quoted_once(key: str, url: str) -> None:
    store = StoreSpec("s3", "bucket", "alias", {})
    assert scans._url(FileScan("json", (key,), SCHEMA, ".json", store=store), key) == url
