"""Names types of columns as SQL does, which models have seen more often than Arrow's names."""

import re

_NAMES = {
    "Boolean": "BOOLEAN", "Int8": "TINYINT", "Int16": "SMALLINT", "Int32": "INT", "Int64": "BIGINT",
    "UInt8": "INT", "UInt16": "INT", "UInt32": "BIGINT", "UInt64": "BIGINT", "Float16": "REAL",
    "Float32": "REAL", "Float64": "DOUBLE", "Utf8": "VARCHAR", "LargeUtf8": "VARCHAR",
    "Utf8View": "VARCHAR", "Binary": "BYTEA", "LargeBinary": "BYTEA", "BinaryView": "BYTEA",
    "Date32": "DATE", "Date64": "DATE",
}  # fmt: skip


def sql_type(data_type: str) -> str:
    """Return the SQL name of an Arrow type."""
    if name := _NAMES.get(data_type):
        return name
    if data_type.startswith("Timestamp("):
        return "TIMESTAMP" if data_type.endswith("None)") else "TIMESTAMPTZ"
    if data_type.startswith("Time"):
        return "TIME"
    if match := re.match(r"Decimal\d+\((\d+), (-?\d+)\)", data_type):
        return f"DECIMAL({match[1]},{match[2]})"
    if data_type.startswith("Dictionary("):
        # Of the values, whose type may have commas itself; that of the indices has none.
        return sql_type(data_type.removesuffix(")").partition(", ")[2])
    if match := re.match(r"(?:Large|FixedSize)?List\((?:\d+ x )?(.*)\)$", data_type):
        return f"{sql_type(match[1])}[]"
    return data_type.upper() if data_type.isalnum() else data_type
