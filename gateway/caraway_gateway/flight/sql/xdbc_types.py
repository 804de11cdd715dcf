"""The types of the SQL of the runtime, as ODBC and JDBC describe types."""

import pyarrow as pa

from caraway_gateway.flight.sql import metadata_schemas
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto

_NULLABLE = proto.NULLABILITY_NULLABLE
_FULL = proto.SEARCHABLE_FULL


def table(data_type: int | None = None) -> pa.Table:
    """Return all types, or those of one code."""
    rows = [each for each in _rows() if data_type is None or each["data_type"] == data_type]
    return pa.Table.from_pylist(rows, schema=metadata_schemas.XDBC_TYPE_INFO)


def _rows() -> list[dict[str, object]]:
    return [
        _type("BOOLEAN", proto.XDBC_BIT, 1),
        _number("TINYINT", proto.XDBC_TINYINT, 3),
        _number("SMALLINT", proto.XDBC_SMALLINT, 5),
        _number("INT", proto.XDBC_INTEGER, 10),
        _number("BIGINT", proto.XDBC_BIGINT, 19),
        _number("INT UNSIGNED", proto.XDBC_BIGINT, 10, is_unsigned=True),
        _number("BIGINT UNSIGNED", proto.XDBC_NUMERIC, 20, is_unsigned=True),
        _number("REAL", proto.XDBC_REAL, 24, radix=2),
        _number("DOUBLE", proto.XDBC_DOUBLE, 53, radix=2),
        _number("DECIMAL", proto.XDBC_DECIMAL, 76, scale=76, params=["precision", "scale"]),
        _type("VARCHAR", proto.XDBC_VARCHAR, None, quotes="'", is_case_sensitive=True),
        _type("BYTEA", proto.XDBC_VARBINARY, None, prefix="x'", quotes="'"),
        _time("DATE", proto.XDBC_DATE, 10, proto.XDBC_SUBCODE_DATE),
        _time("TIME", proto.XDBC_TIME, 18, proto.XDBC_SUBCODE_TIME),
        _time("TIMESTAMP", proto.XDBC_TIMESTAMP, 29, proto.XDBC_SUBCODE_TIMESTAMP),
    ]


def _type(
    name: str,
    code: int,
    size: int | None,
    *,
    quotes: str | None = None,
    prefix: str | None = None,
    is_case_sensitive: bool = False,
) -> dict[str, object]:
    return {
        "type_name": name,
        "data_type": code,
        "column_size": size,
        "literal_prefix": prefix or quotes,
        "literal_suffix": quotes,
        "create_params": None,
        "nullable": _NULLABLE,
        "case_sensitive": is_case_sensitive,
        "searchable": _FULL,
        "unsigned_attribute": None,
        "fixed_prec_scale": False,
        "auto_increment": None,
        "local_type_name": name,
        "minimum_scale": None,
        "maximum_scale": None,
        "sql_data_type": code,
        "datetime_subcode": None,
        "num_prec_radix": None,
        "interval_precision": None,
    }


def _number(
    name: str,
    code: int,
    size: int,
    *,
    is_unsigned: bool = False,
    radix: int = 10,
    scale: int = 0,
    params: list[str] | None = None,
) -> dict[str, object]:
    numeric = {
        "create_params": params,
        "unsigned_attribute": is_unsigned,
        "auto_increment": False,
        "minimum_scale": 0,
        "maximum_scale": scale,
        "num_prec_radix": radix,
    }
    return _type(name, code, size) | numeric


def _time(name: str, code: int, size: int, subcode: int) -> dict[str, object]:
    made = _type(name, code, size, quotes="'", prefix=f"{name} '")
    return made | {"sql_data_type": proto.XDBC_DATETIME, "datetime_subcode": subcode}
