"""Types of Arrow, as the runtime writes them, have names that a model knows from SQL."""

import pyarrow as pa
import pytest

from caraway_ai.text_to_sql.type_names import sql_type
from caraway_serving.formats import datatypes


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (pa.bool_(), "BOOLEAN"), (pa.int8(), "TINYINT"), (pa.uint32(), "BIGINT"),
        (pa.float16(), "REAL"), (pa.float64(), "DOUBLE"), (pa.string_view(), "VARCHAR"),
        (pa.binary_view(), "BYTEA"), (pa.date64(), "DATE"), (pa.time32("s"), "TIME"),
        (pa.timestamp("ns"), "TIMESTAMP"), (pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
        (pa.timestamp("s", "+01:00"), "TIMESTAMPTZ"), (pa.decimal128(10, 2), "DECIMAL(10,2)"),
        (pa.decimal256(50, -2), "DECIMAL(50,-2)"), (pa.list_(pa.string()), "VARCHAR[]"),
        (pa.list_(pa.float32(), 3), "REAL[]"), (pa.large_list(pa.date32()), "DATE[]"),
        (pa.list_(pa.list_(pa.decimal128(5, 1))), "DECIMAL(5,1)[][]"),
        (pa.list_(pa.timestamp("us")), "TIMESTAMP[]"),
        (pa.dictionary(pa.int32(), pa.string()), "VARCHAR"),
        (pa.dictionary(pa.int8(), pa.decimal128(10, 2)), "DECIMAL(10,2)"),
        (pa.dictionary(pa.int8(), pa.timestamp("us", "UTC")), "TIMESTAMPTZ"),
        (pa.list_(pa.dictionary(pa.int8(), pa.string())), "VARCHAR[]"),
        (pa.null(), "NULL"),
    ],
)  # fmt: skip
def test_names(type_: pa.DataType, name: str) -> None:
    assert sql_type(datatypes.display(type_)) == name


@pytest.mark.parametrize(
    "type_", [pa.struct([("a, b", pa.int8())]), pa.map_(pa.string(), pa.int8()), pa.binary(3)]
)
def test_a_type_that_sql_has_no_name_for_is_written_out(type_: pa.DataType) -> None:
    assert sql_type(datatypes.display(type_)) == datatypes.display(type_)


def test_lists_in_lists_have_an_end() -> None:
    assert sql_type("List(" * 50 + "Int8" + ")" * 50) == "TINYINT" + "[]" * 50
