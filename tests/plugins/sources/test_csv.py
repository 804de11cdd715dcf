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


COMMA = {"csv_delimiter": ";", "csv_decimal_separator": ","}


def test_numbers_may_have_a_decimal_comma(text: Write) -> None:
    content = "i;f;e;d;s\n1;1,5;-,25;2024-01-31;a,b\n2;3;1,5e3;2024-02-01;1,2,3\n;;;;\n"
    dataset = text(content, **COMMA)
    types = [str(field.type) for field in dataset.files().schema]
    assert types == ["int64", "double", "double", "date32[day]", "string"]
    sql = "SELECT i, f, e, s FROM t ORDER BY i NULLS LAST"
    assert dataset.rows(sql) == [
        {"i": 1, "f": 1.5, "e": -0.25, "s": "a,b"},
        {"i": 2, "f": 3.0, "e": 1500.0, "s": "1,2,3"},
        {"i": None, "f": None, "e": None, "s": None},
    ]
    assert dataset.rows("SELECT sum(f) AS f FROM t WHERE f < 3") == [{"f": 1.5}]
    tabs = text("a\tb\n1,5\tx\n", name="x.tsv", tsv_decimal_separator=",")
    assert tabs.rows() == [{"a": 1.5, "b": "x"}]


def test_a_declared_decimal_is_exact_with_a_comma(text: Write) -> None:
    declared = (pa.field("a", pa.decimal128(20, 2)),)
    dataset = text(
        "a;b\n12345678901234567,89;x\nNA;y\n", declared=declared, csv_null_regex="^NA$", **COMMA
    )
    found = dataset.rows("SELECT CAST(a AS VARCHAR) AS a FROM t ORDER BY b")
    assert found == [{"a": "12345678901234567.89"}, {"a": None}]


@pytest.mark.parametrize("value", ["1.234", "1.234,5", "1.5", "-12.345.678"])
def test_points_in_numbers_are_refused_beside_a_decimal_comma(text: Write, value: str) -> None:
    content = f"k;a\n1;1,5\n2;{value}\n"
    with pytest.raises(DatasetError, match=rf"column 'a' of .*x.csv' has '{value}': .* ambiguous"):
        text(content, **COMMA).resolve()
    as_text = text(content, declared=(pa.field("a", pa.string()),), **COMMA)
    assert as_text.rows() == [{"k": 1, "a": "1,5"}, {"k": 2, "a": value}]
    as_number = text(content, declared=(pa.field("a", pa.float64()),), **COMMA)
    with pytest.raises(Exception, match=rf"'{value} \(the decimal separator is a comma\)'"):
        as_number.rows()
    later = text(content, csv_schema_infer_max_records="1", **COMMA)
    with pytest.raises(Exception, match=rf"'{value} \(the decimal separator is a comma\)'"):
        later.rows()


def test_text_with_points_is_text_beside_a_decimal_comma(text: Write) -> None:
    dataset = text("a;b\n192.168.1.1;24.12.2024\n10.0.0.1;31.12.2024\n", **COMMA)
    assert dataset.files().schema.types == [pa.string(), pa.string()]
    mixed = text("a\n1.5\nx\n", **COMMA)
    assert mixed.rows() == [{"a": "1.5"}, {"a": "x"}]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"csv_decimal_separator": ","}, "csv_decimal_separator is ','.*not to the delimiter"),
        ({"csv_decimal_separator": "'"}, 'csv_decimal_separator is "\'"|set it to'),
        ({"csv_decimal_separator": ",,"}, "give one ASCII character"),
    ],
)
def test_other_decimal_separators_are_refused(
    text: Write, params: dict[str, str], message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        text("a\n1\n", **params).resolve()


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
