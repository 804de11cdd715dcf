"""Splitting and type inference of delimited text."""

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from tests.plugins.sources import reading

Write = Callable[..., reading.Dataset]


@pytest.fixture
def text(tmp_path: Path) -> Write:
    def write(
        content: str, name: str = "x.csv", declared: tuple[pa.Field, ...] = (), **params: str
    ) -> reading.Dataset:
        (tmp_path / name).write_bytes(content.encode())
        return reading.Dataset("file", name, tmp_path, params, declared)

    return write


def test_types_come_from_the_values(text: Write) -> None:
    dataset = text(
        "i,f,b,d,t,n,s,e,big\n"
        "1,1,true,2024-01-01,2024-01-01T00:00:00,2024-01-01 00:00:00.123456789,x,,1\n"
        "-2,.5,FALSE,2024-12-31,2024-01-01 10:00:00.25Z,2024-01-01 00:00:00,1,,"
        "99999999999999999999\n"
        ",1e3,,,,,,,\n"
    )
    assert [str(field.type) for field in dataset.files().schema] == [
        "int64",
        "double",
        "bool",
        "date32[day]",
        "timestamp[us]",
        "timestamp[ns]",
        "string",
        "string",
        "string",
    ]
    sql = "SELECT * EXCEPT (n), CAST(n AS VARCHAR) AS n FROM t ORDER BY i NULLS FIRST"
    last, first, second = dataset.rows(sql)
    assert second["n"].endswith("00:00:00.123456789")
    assert (second["i"], second["f"], second["b"]) == (1, 1.0, True)
    assert first["t"] == datetime(2024, 1, 1, 10, 0, 0, 250000)
    assert second["d"] == date(2024, 1, 1)
    assert set(last.values()) == {None, 1000.0}


def test_quoted_newlines_delimiters_and_quotes(text: Write) -> None:
    rows = text('a,b\n1,"x\ny, ""z"""\n2,"p\r\nq"\n').rows()
    assert rows == [{"a": 1, "b": 'x\ny, "z"'}, {"a": 2, "b": "p\r\nq"}]


def test_a_file_without_header_gets_numbered_or_declared_names(text: Write) -> None:
    assert text("1,x\n", csv_has_header="false").rows() == [{"column_1": 1, "column_2": "x"}]
    declared = (pa.field("id", pa.int32()), pa.field("name", pa.string()))
    named = text("1,x\n2,y\n", declared=declared, csv_has_header="false")
    assert named.files().schema == pa.schema(declared)
    assert named.rows() == [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]
    with pytest.raises(DatasetError, match="3 columns and no header; `columns` declares 2"):
        text("1,x,y\n", declared=declared, csv_has_header="false").resolve()


def test_other_characters(text: Write) -> None:
    dataset = text(
        "# note\na;b\n1;'x;y'\n",
        csv_delimiter=";",
        csv_quote="'",
        csv_comment="#",
    )
    assert dataset.rows() == [{"a": 1, "b": "x;y"}]
    assert text('a,b\n1,"x\\"y"\n', csv_escape="\\").rows() == [{"a": 1, "b": 'x"y'}]
    tsv = text("1\tx\n", name="x.tsv", tsv_has_header="false")
    assert tsv.rows() == [{"column_1": 1, "column_2": "x"}]


def test_null_regex(text: Write) -> None:
    dataset = text("a,b\n1,NA\nNA,x\n,-\n", csv_null_regex="^(NA|-)$")
    assert dataset.files().schema.field("a").type == pa.int64()
    assert dataset.rows("SELECT * FROM t ORDER BY a NULLS LAST, b NULLS LAST") == [
        {"a": 1, "b": None},
        {"a": None, "b": "x"},
        {"a": None, "b": None},
    ]


def test_a_byte_order_mark_is_not_part_of_the_first_name(text: Write) -> None:
    assert text("\ufeffa,b\n1,x\n").rows() == [{"a": 1, "b": "x"}]


def test_ragged_and_doubled_files_are_refused(text: Write) -> None:
    with pytest.raises(DatasetError, match=r"record 2 of .* has 3 fields"):
        text("a,b\n1,2\n1,2,3\n").resolve()
    with pytest.raises(DatasetError, match=r"repeats \['a'\]"):
        text("a,a\n1,2\n").resolve()
    with pytest.raises(DatasetError, match="no columns"):
        text("").resolve()


def test_the_sample_can_be_bounded(text: Write) -> None:
    content = "a\n1\nx\n"
    assert text(content).files().schema.field("a").type == pa.string()
    bounded = text(content, csv_schema_infer_max_records="1")
    assert bounded.files().schema.field("a").type == pa.int64()


def test_a_header_alone_makes_an_empty_table(text: Write) -> None:
    assert text("a,b\n").rows() == []
    assert text("a,b\n").files().schema.names == ["a", "b"]


def test_blank_lines_are_no_records(text: Write) -> None:
    assert text("a,b\n\n1,x\n\n2,y\n").rows() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
