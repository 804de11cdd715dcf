"""Types for ODBC and JDBC: their codes, literals and sizes."""

import pytest

from caraway_gateway.flight.sql import metadata_schemas, xdbc_types
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto

ROWS = {each["type_name"]: each for each in xdbc_types.table().to_pylist()}


def test_the_columns_are_those_of_the_protocol() -> None:
    assert xdbc_types.table().schema == metadata_schemas.XDBC_TYPE_INFO
    assert len(ROWS) == xdbc_types.table().num_rows


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (proto.XDBC_BIGINT, ["BIGINT", "INT UNSIGNED"]),
        (proto.XDBC_VARCHAR, ["VARCHAR"]),
        (proto.XDBC_INTERVAL, []),
        (0, []),
    ],
)
def test_types_of_a_code(code: int, names: list[str]) -> None:
    found = xdbc_types.table(code)
    assert found["type_name"].to_pylist() == names
    assert found.schema == metadata_schemas.XDBC_TYPE_INFO


@pytest.mark.parametrize(
    ("name", "literal"),
    [
        ("BIGINT", (None, None)),
        ("VARCHAR", ("'", "'")),
        ("BYTEA", ("x'", "'")),
        ("DATE", ("DATE '", "'")),
        ("TIMESTAMP", ("TIMESTAMP '", "'")),
    ],
)
def test_literals(name: str, literal: tuple[str | None, str | None]) -> None:
    assert (ROWS[name]["literal_prefix"], ROWS[name]["literal_suffix"]) == literal


def test_times_have_one_code_and_a_subcode() -> None:
    times = [ROWS[name] for name in ("DATE", "TIME", "TIMESTAMP")]
    assert {each["sql_data_type"] for each in times} == {proto.XDBC_DATETIME}
    assert len({each["datetime_subcode"] for each in times}) == 3
    assert all(
        each["sql_data_type"] == each["data_type"] for each in ROWS.values() if each not in times
    )


def test_numbers_say_their_sign() -> None:
    unsigned = {name for name, each in ROWS.items() if each["unsigned_attribute"]}
    assert unsigned == {"INT UNSIGNED", "BIGINT UNSIGNED"}
    assert ROWS["DECIMAL"]["create_params"] == ["precision", "scale"]
    assert ROWS["DOUBLE"]["num_prec_radix"] == 2
