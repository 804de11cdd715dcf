"""The types of columns as SQLAlchemy describes them, and their names in SQL."""

import pyarrow as pa
import pytest
from sqlalchemy import cast, literal_column, types

from caraway.sqlalchemy_dialect import CarawayDialect
from caraway.sqlalchemy_types import of_arrow


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.bool_(), "Boolean()"),
        (pa.uint8(), "SmallInteger()"),
        (pa.int32(), "Integer()"),
        (pa.uint32(), "BigInteger()"),
        (pa.int64(), "BigInteger()"),
        (pa.uint64(), "Numeric(precision=20, scale=0)"),
        (pa.float32(), "REAL()"),
        (pa.float64(), "Double()"),
        (pa.decimal128(12, 2), "Numeric(precision=12, scale=2)"),
        (pa.string_view(), "String()"),
        (pa.dictionary(pa.int8(), pa.string()), "String()"),
        (pa.binary(4), "LargeBinary()"),
        (pa.date32(), "Date()"),
        (pa.time64("us"), "Time()"),
        (pa.timestamp("ns"), "DateTime()"),
        (pa.timestamp("us", "UTC"), "DateTime(timezone=True)"),
        (pa.list_(pa.string()), "ARRAY(String(), dimensions=1)"),
        (pa.list_(pa.list_(pa.int64())), "ARRAY(BigInteger(), dimensions=2)"),
        (pa.struct([("a", pa.int64())]), "NullType()"),
        (pa.duration("s"), "NullType()"),
    ],
)
def test_type_of_an_arrow_type(kind: pa.DataType, expected: str) -> None:
    assert repr(of_arrow(kind)) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (types.Float(), "DOUBLE"),
        (types.FLOAT(), "DOUBLE"),
        (types.Double(), "DOUBLE"),
        (types.Text(), "VARCHAR"),
        (types.String(20), "VARCHAR"),
        (types.Uuid(), "VARCHAR"),
        (types.JSON(), "VARCHAR"),
        (types.LargeBinary(), "BYTEA"),
        (types.BLOB(), "BYTEA"),
        (types.DateTime(), "TIMESTAMP"),
        (types.DATETIME(timezone=True), "TIMESTAMP WITH TIME ZONE"),
        (types.Numeric(10, 2), "NUMERIC(10, 2)"),
        (types.ARRAY(types.Integer(), dimensions=2), "INTEGER[][]"),
    ],
)
def test_name_of_a_type_in_a_cast(kind: types.TypeEngine[object], expected: str) -> None:
    made = cast(literal_column("a"), kind).compile(dialect=CarawayDialect())
    assert str(made) == f"CAST(a AS {expected})"
