import csv
import datetime as dt
import decimal
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_serving import formats
from caraway_serving.formats import Format
from caraway_serving.formats.datatypes import display


def encode(format_: Format, *batches: pa.RecordBatch, schema: pa.Schema | None = None) -> bytes:
    encoder = formats.make(format_)
    parts = [encoder.encode_start(schema or batches[0].schema)]
    parts += [encoder.encode(batch) for batch in batches]
    return b"".join((*parts, encoder.end(3)))


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


PEOPLE = batch(id=[1, 2], name=["Ann", None])


def test_json_is_an_array_with_null_written_out() -> None:
    assert encode("json", PEOPLE, batch(id=[3], name=["é\n"])) == (
        '[{"id":1,"name":"Ann"},{"id":2,"name":null},{"id":3,"name":"é\\n"}]'.encode()
    )


def test_json_of_no_rows_is_an_empty_array() -> None:
    assert encode("json", schema=PEOPLE.schema) == b"[]"
    assert encode("json", PEOPLE.slice(0, 0), PEOPLE.slice(0, 0)) == b"[]"


def test_empty_batches_between_rows_leave_the_array_well_formed() -> None:
    empty = PEOPLE.slice(0, 0)
    assert len(json.loads(encode("json", empty, PEOPLE, empty, PEOPLE))) == 4


def test_ndjson_is_a_row_a_line() -> None:
    assert encode("ndjson", PEOPLE) == b'{"id":1,"name":"Ann"}\n{"id":2,"name":null}\n'


def test_versioned_form_has_schema_rows_and_counts() -> None:
    document = json.loads(encode("versioned", PEOPLE, PEOPLE))
    assert document["row_count"] == 4
    assert document["execution_time_ms"] == 3
    assert document["schema"]["fields"][1] == {
        "name": "name",
        "data_type": "Utf8",
        "nullable": True,
        "dict_id": 0,
        "dict_is_ordered": False,
    }
    assert document["data"][1] == {"id": 2, "name": None}


def test_csv_quotes_where_it_must_and_leaves_null_empty() -> None:
    rows = batch(a=['x,"y"', None], b=[1.5, 2.0])
    assert encode("csv", rows) == b'a,b\n"x,""y""",1.5\n,2.0\n'


def test_csv_of_no_rows_is_its_header() -> None:
    assert encode("csv", schema=pa.schema([("a,b", pa.int64())])) == b'"a,b"\n'


def test_csv_holds_nested_values_as_json() -> None:
    rows = pa.record_batch(
        {
            "list": pa.array([[1, None], None]),
            "map": pa.array([[(1, "a")], None], pa.map_(pa.int64(), pa.string())),
        }
    )
    cells = list(csv.reader(io.StringIO(encode("csv", rows).decode())))
    assert cells == [["list", "map"], ["[1,null]", '{"1":"a"}'], ["", ""]]


def test_text_table_is_bordered_and_aligned() -> None:
    assert encode("text", PEOPLE).decode() == (
        "+----+------+\n| id | name |\n+----+------+\n| 1  | Ann  |\n| 2  |      |\n+----+------+\n"
    )


def test_text_table_of_no_rows_shows_its_header() -> None:
    assert encode("text", schema=PEOPLE.schema).decode().splitlines()[1] == "| id | name |"


def test_text_table_escapes_line_breaks_and_fits_wide_characters() -> None:
    lines = encode("text", batch(a=["x\ny", "漢字"])).decode().splitlines()
    assert lines[3] == "| x\\ny |"
    assert lines[4] == "| 漢字 |"


def test_text_table_streams_after_ten_thousand_rows() -> None:
    encoder = formats.make("text")
    rows = batch(a=list(range(8_000)))
    encoder.encode_start(rows.schema)
    assert encoder.encode(rows) == b""
    assert encoder.encode(rows).count(b"\n") == 16_000 + 3
    assert encoder.encode(rows).count(b"\n") == 8_000


def test_arrow_stream_reads_back_equal_and_without_views() -> None:
    rows = pa.record_batch(
        {
            "view": pa.array(["a", None], pa.string_view()),
            "list": pa.array([["x"], None], pa.list_(pa.string_view())),
            "dict": pa.array(["p", "q"]).dictionary_encode(),
        }
    )
    table = pa.ipc.open_stream(encode("arrow", rows, rows)).read_all()
    assert table.schema.field("view").type == pa.string()
    assert table.schema.field("list").type == pa.list_(pa.string())
    assert table.to_pylist() == rows.to_pylist() * 2


def test_arrow_stream_takes_dictionaries_that_differ_between_batches() -> None:
    first = pa.record_batch({"d": pa.array(["a"]).dictionary_encode()})
    second = pa.record_batch({"d": pa.array(["b", "c"]).dictionary_encode()})
    table = pa.ipc.open_stream(encode("arrow", first, second)).read_all()
    assert table.column("d").to_pylist() == ["a", "b", "c"]


VALUES: list[tuple[pa.Array, Any, str]] = [
    (pa.array([2**62]), 2**62, "Int64"),
    (pa.array([2**63], pa.uint64()), 2**63, "UInt64"),
    (pa.array([float("nan")]), None, "Float64"),
    (pa.array([b"\x00\xff"]), "00ff", "Binary"),
    (pa.array([decimal.Decimal("1.50")]), 1.5, "Decimal128(3, 2)"),
    (pa.array([dt.date(2024, 1, 31)]), "2024-01-31", "Date32"),
    (pa.array([dt.datetime(2024, 1, 1, 1, 2, 3)]), "2024-01-01T01:02:03",
     "Timestamp(Microsecond, None)"),
    (pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ms", "UTC")), "2024-01-01T00:00:00Z",
     'Timestamp(Millisecond, Some("UTC"))'),
    (pa.array([[1, None]]), [1, None], "List(Int64)"),
    (pa.array([{"a": 1, "b": None}]), {"a": 1, "b": None}, 'Struct("a": Int64, "b": Null)'),
    (pa.array([[(1, "x")]], pa.map_(pa.int64(), pa.string())), {"1": "x"}, "Map(Int64, Utf8)"),
    (pa.array(["x"]).dictionary_encode(), "x", "Dictionary(Int32, Utf8)"),
    (pa.array([None]), None, "Null"),
    (pa.array([True]), True, "Boolean"),
    (pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)), [1.0, 2.0], "FixedSizeList(2 x Float32)"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "name"), VALUES, ids=[case[2] for case in VALUES])
def test_every_type_has_a_json_value_a_text_and_a_name(
    column: pa.Array, value: Any, name: str
) -> None:
    rows = pa.record_batch({"c": column})
    assert json.loads(encode("json", rows)) == [{"c": value}]
    assert encode("csv", rows).startswith(b"c\n")
    assert encode("text", rows).count(b"\n") == 5
    assert display(column.type) == name


def test_parquet_reads_back_equal_and_without_views() -> None:
    rows = pa.record_batch(
        {
            "view": pa.array(["a", None], pa.string_view()),
            "list": pa.array([["x"], None], pa.list_(pa.string_view())),
            "dict": pa.array(["p", "q"]).dictionary_encode(),
        }
    )
    table = pq.read_table(io.BytesIO(encode("parquet", rows, rows)))
    assert table.schema.field("view").type == pa.string()
    assert table.to_pylist() == rows.to_pylist() * 2


def test_parquet_of_no_rows_has_its_schema() -> None:
    table = pq.read_table(io.BytesIO(encode("parquet", schema=PEOPLE.schema)))
    assert (table.schema, table.num_rows) == (PEOPLE.schema, 0)


def test_parquet_comes_in_groups_of_bounded_rows() -> None:
    encoder = formats.make("parquet")
    rows = batch(a=list(range(200_000)))
    parts = [encoder.encode_start(rows.schema), encoder.encode(rows), encoder.encode(rows)]
    assert all(len(part) > 0 for part in parts[1:])
    parts.append(encoder.end(0))
    file = pq.ParquetFile(io.BytesIO(b"".join(parts)))
    groups = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
    assert sum(groups) == 400_000
    assert max(groups) < 262_144


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.schema([("a", pa.month_day_nano_interval())]), "cast the column to text"),
        (pa.schema([]), "rows without columns"),
    ],
)
def test_what_parquet_cannot_hold_is_said_before_the_first_byte(
    schema: pa.Schema, message: str
) -> None:
    with pytest.raises(InvalidQueryError, match=message):
        formats.make("parquet").encode_start(schema)
