"""The engine reads all texts of a column, for any type that is inferred from them."""

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_core.tables import CsvDialect
from caraway_plugins.sources import csv_shape
from caraway_plugins.sources.samples import FileSample
from tests.plugins.sources.reading import Dataset

STAMPS = st.builds(
    "{}-{}-{}{}{}:{}:{}{}{}".format,
    st.sampled_from(["2024", "1969", "0000", "9999", "1677", "2262"]),
    st.sampled_from(["00", "02", "12", "13"]),
    st.sampled_from(["00", "28", "29", "30", "31", "32"]),
    st.sampled_from(["T", " "]),
    st.sampled_from(["00", "23", "24"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(["", ".5", ".123456", ".1234567", ".123456789", "."]),
    st.sampled_from(["", "Z", "+05:30", "-2359", "+24:00", "+99:99", "+5"]),
)
TEXTS = st.one_of(
    STAMPS,
    STAMPS.map(lambda text: text[:10]),
    st.from_regex(r"-?[0-9]{1,21}", fullmatch=True),
    st.from_regex(r"[-+]?[0-9]{0,3}\.?[0-9]{0,3}([eE][-+]?[0-9]{1,4})?", fullmatch=True),
    st.sampled_from(["true", "FALSE", "T", "null", "NaN", "inf", "-0", "0x1", "1_0", " 1", "1 ",
                     "\u0661\u0662", "\uff11", "1\u0660", "", "-", ".", "a,b", 'q"q', "l1\nl2"]),
)  # fmt: skip


def _infer(text: str, most: int | None = None, **dialect: Any) -> pa.Schema:
    return csv_shape.infer(FileSample(text, True), CsvDialect(**dialect), most, "f.csv")


@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_the_engine_reads_every_text_as_the_inferred_type(texts: list[str]) -> None:
    sink = io.StringIO()
    writer = csv.writer(sink)
    writer.writerows([("n", "v"), *((n, text) for n, text in enumerate(texts))])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "f.csv").write_text(sink.getvalue(), newline="")
        dataset = Dataset("file", "f.csv", Path(folder), {})
        type_ = dataset.resolve().schema.field("v").type
        found = [row["v"] for row in dataset.rows("SELECT v FROM t ORDER BY n")]
    for text, value in zip(texts, found, strict=True):
        assert (value is None) == (text == "")
        if value is None:
            continue
        if pa.types.is_integer(type_):
            assert value == int(text)
        elif pa.types.is_floating(type_):
            assert value == float(text)
        elif pa.types.is_boolean(type_):
            assert value == (text.lower() == "true")
        elif pa.types.is_string(type_):
            assert value == text
        else:
            # The zone may move the moment to another day, but not further.
            assert abs(int(str(value)[:4]) - int(text[:4])) <= 1


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (["1", "-2", ""], pa.int64()),
        (["9223372036854775807", "-9223372036854775808"], pa.int64()),
        (["9223372036854775808"], pa.string()),
        (["9" * 5000], pa.string()),
        (["1", "1.5"], pa.float64()),
        (["1", "x"], pa.string()),
        (["true", "1"], pa.string()),
        (["2024-02-29"], pa.date32()),
        (["2023-02-29"], pa.string()),
        (["2024-02-29", "2024-02-29 10:00:00"], pa.timestamp("us")),
        (["2024-02-29T10:00:00.123456789"], pa.timestamp("ns")),
        (["1600-02-29T10:00:00.123456789"], pa.string()),
        (["2024-02-29 24:00:00"], pa.string()),
        (["\u0661"], pa.string()),
        (["", ""], pa.null()),
    ],
)
def test_the_narrowest_type_of_all_texts_is_taken(texts: list[str], type_: pa.DataType) -> None:
    text = "\n".join(["v,w", *(f"{each},0" for each in texts)])
    assert _infer(text).field("v").type == type_


@pytest.mark.parametrize(
    ("text", "dialect", "says"),
    [
        ("a,b,a\n1,2,3\n", {}, "the header of 'f.csv' repeats ['a']"),
        ("a,b\n1,2\n3\n", {}, "record 2 of 'f.csv' has 1 fields and the file has 2 columns"),
        ("a\n1\n", {"null_regex": "("}, "params.csv_null_regex is not a regular expression"),
        ("a\n1\n", {"null_regex": "[z-a]"}, "params.csv_null_regex is not a regular expression"),
        ("a\n1\n", {"null_regex": "x{99999999999}"}, "params.csv_null_regex is not a regular"),
    ],
)
def test_what_cannot_be_inferred_is_explained(
    text: str, dialect: dict[str, Any], says: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        _infer(text, **dialect)
    assert says in caught.value.message


def test_a_record_that_the_sample_cuts_off_does_not_count() -> None:
    dialect = CsvDialect()
    cut = csv_shape.infer(FileSample("v\n1\n2.", False), dialect, None, "f.csv")
    assert cut.field("v").type == pa.int64()
    whole = csv_shape.infer(FileSample("v\n1\n2.", True), dialect, None, "f.csv")
    assert whole.field("v").type == pa.float64()
    assert csv_shape.infer(FileSample("", True), dialect, None, "f.csv") == pa.schema([])
    huge = "v\n1\n" + "x" * 200_000
    assert csv_shape.infer(FileSample(huge, True), dialect, None, "f.csv").names == ["v"]


def test_records_that_are_no_rows_and_nulls_have_no_type() -> None:
    assert _infer("#c\nv\n#x\n1\n", comment="#").field("v").type == pa.int64()
    assert _infer("v,w\nNA,1\n2,NA\n", null_regex="^NA$").types == [pa.int64(), pa.int64()]
    assert _infer("1,x\n", has_header=False).names == ["column_1", "column_2"]
    assert _infer("v\n1\nx\n", most=1).field("v").type == pa.int64()
