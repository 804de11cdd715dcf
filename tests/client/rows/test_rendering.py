import datetime as dt
import io
import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway import CarawayError
from caraway.rows import rendering

Writer = Callable[[pa.Schema, Iterable[pa.RecordBatch], BinaryIO], None]
NOON = dt.datetime(2024, 7, 1, 12, 0, 0, 5000, tzinfo=dt.UTC)
TABLE = pa.table(
    {
        "big": pa.array([2**63 - 1, None]),
        "amount": pa.array([Decimal("1.50"), None], pa.decimal128(38, 2)),
        "at": pa.array([NOON, None], pa.timestamp("us", "UTC")),
        "ns": pa.array([1_000_000_001, None], pa.timestamp("ns")),
        "day": pa.array([dt.date(2024, 1, 2), None]),
        "raw": pa.array([b"\x00\xff", None]),
        "real": pa.array([float("nan"), None]),
        "text": pa.array(['a "b", ä\n', None]),
        "list": pa.array([[{"a": Decimal("1.5")}], None]),
        "flag": pa.array([True, None]),
    }
)
EMPTY = TABLE.slice(0, 0)


def written(write: Writer, table: pa.Table) -> bytes:
    sink = io.BytesIO()
    write(table.schema, iter(table.to_batches(max_chunksize=1)), sink)
    return sink.getvalue()


@pytest.mark.parametrize("write", [rendering.write_json, rendering.write_ndjson])
def test_json_has_each_value_in_the_form_of_the_server(write: Writer) -> None:
    text = written(write, TABLE).decode()
    lines = text.splitlines() if write is rendering.write_ndjson else []
    rows = [json.loads(line) for line in lines] or json.loads(text)

    assert rows[0] == {
        "big": 2**63 - 1,
        "amount": 1.5,
        "at": "2024-07-01T12:00:00.005000Z",
        "ns": "1970-01-01T00:00:01.000000001",
        "day": "2024-01-02",
        "raw": "00ff",
        "real": None,
        "text": 'a "b", ä\n',
        "list": [{"a": 1.5}],
        "flag": True,
    }
    assert set(rows[1].values()) == {None}
    assert '"amount":1.50' in text


def test_csv_quotes_what_it_must() -> None:
    head, first, *_ = written(rendering.write_csv, TABLE.select(["big", "text", "list"])).split(
        b"\n"
    )

    assert head == b"big,text,list"
    assert first == '9223372036854775807,"a ""b"", ä'.encode()


def test_csv_has_times_and_decimals_in_the_form_of_the_server() -> None:
    columns = ["amount", "at", "day", "raw", "list", "flag"]

    assert written(rendering.write_csv, TABLE.select(columns)).decode().splitlines()[1:] == [
        '1.50,2024-07-01T12:00:00.005000Z,2024-01-02,00ff,"[{""a"":1.5}]",true',
        ",,,,,",
    ]


def test_a_table_has_borders_also_without_rows() -> None:
    assert written(rendering.write_table, pa.table({"n": [1], "long": ["x"]})).decode() == (
        "+---+------+\n| n | long |\n+---+------+\n| 1 | x    |\n+---+------+\n"
    )
    assert written(rendering.write_table, pa.table({"n": pa.array([], pa.int64())})).decode() == (
        "+---+\n| n |\n+---+\n+---+\n"
    )


def test_no_rows_are_an_empty_list() -> None:
    assert written(rendering.write_json, EMPTY) == b"[]\n"
    assert written(rendering.write_ndjson, EMPTY) == b""


@pytest.mark.parametrize("table", [TABLE, EMPTY])
def test_files_hold_what_was_written(table: pa.Table) -> None:
    arrow = pa.ipc.open_stream(written(rendering.write_arrow, table)).read_all()
    parquet = pq.read_table(io.BytesIO(written(rendering.write_parquet, table)))

    assert arrow.schema == parquet.schema == table.schema
    assert arrow.drop(["real", "ns"]).to_pylist() == table.drop(["real", "ns"]).to_pylist()
    assert parquet.num_rows == table.num_rows


def test_small_batches_share_a_row_group() -> None:
    table = pa.table({"n": range(1000)})

    assert pq.ParquetFile(io.BytesIO(written(rendering.write_parquet, table))).num_row_groups == 1


def test_json_refuses_columns_that_share_a_name() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])

    with pytest.raises(CarawayError, match="share the name"):
        written(rendering.write_json, twice)
    assert written(rendering.write_csv, twice) == b"a,a\n1,2\n"
