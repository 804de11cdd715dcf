"""The SQL by which a column is read, so that each value has the type of the column or is an error.

A column of SQLite holds values of any type. It is read by an expression that fails for other
values, with an error of a JSON function: no other function has errors that name the column.
"""

import re
from collections.abc import Callable

import pyarrow as pa

types = pa.types
_UNFIT = re.compile(r"bad JSON path: 'unfit (.*)0'", re.DOTALL)
_CHECKED = "CASE {1} WHEN {0} IS NULL THEN NULL ELSE json_extract('[]', {2} || ({0} IS NULL)) END"
"""No test of a right value is true for NULL, and few values are NULL."""
_DIGITS = "printf('%!.15g', {0})"
"""A number that is one with at most 15 digits, which are those that SQLite keeps of a literal."""
_HAS_DIGITS = f"CAST({_DIGITS} AS REAL) = {{0}}"
_WHOLE = 2**53
_SIZED = {
    "TINYINT": pa.int8(),
    "INT1": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT2": pa.int16(),
    "MEDIUMINT": pa.int32(),
    "INT4": pa.int32(),
}
_NAMED = {
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "DATETIME": pa.timestamp("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}
_PARTS = (
    ("INT", pa.int64()),
    ("CHAR", pa.string()),
    ("CLOB", pa.string()),
    ("TEXT", pa.string()),
    ("BLOB", pa.binary()),
    ("REAL", pa.float64()),
    ("FLOA", pa.float64()),
    ("DOUB", pa.float64()),
    ("BOOL", pa.bool_()),
)
"""Parts of names in the order of SQLite's own rules, and BOOL, which it has no type for."""
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


def arrow_type(written: str) -> pa.DataType | None:
    """Return the type that a table declares for a column; None: any type, which is read as text."""
    name = " ".join(written.upper().split())
    if match := _DECIMAL.fullmatch(name):
        digits, scale = int(match[1]), int(match[2] or 0)
        return pa.decimal128(digits, scale) if scale <= digits <= 38 and digits else None
    name = name.partition("(")[0].strip()
    if (found := _SIZED.get(name) or _NAMED.get(name)) is not None:
        return found
    return next((type_ for part, type_ in _PARTS if part in name), None)


def checked(column: str, name: str, type_: pa.DataType | None) -> str:
    """Return SQL whose values have the type, for a quoted column with this name."""
    path = "'unfit " + name.replace("'", "''") + "'"
    cases = " ".join(f"WHEN {test} THEN {value}" for test, value in _cases(type_))
    return _CHECKED.format(column, cases.format(column), path)


def filler(type_: pa.DataType) -> str:
    """Return a value as answers have it for this type."""
    if types.is_integer(type_) or types.is_boolean(type_):
        return "0"
    if types.is_floating(type_):
        return "0.0"
    return "x''" if types.is_binary(type_) else "''"


def unfit(message: str) -> str | None:
    """Return the name of the column of which an error says that a value has another type."""
    match = _UNFIT.search(message)
    return match and match[1].replace("''", "'")


def _cases(type_: pa.DataType | None) -> list[tuple[str, str]]:
    """Return the test of each form of right values, and their SQL in the answer."""
    if type_ is None:
        return [
            ("typeof({0}) = 'real' AND " + _HAS_DIGITS, _DIGITS),
            ("typeof({0}) <> 'blob'", "CAST({0} AS TEXT)"),
        ]
    return next((made(type_) for test, made in _FORMS.items() if test(type_)), _TEXTS)


def _integers(type_: pa.DataType) -> list[tuple[str, str]]:
    test = "typeof({0}) = 'integer'"
    if type_ == pa.int64():
        return [(test, "{0}")]
    if types.is_signed_integer(type_):
        low, high = -(1 << type_.bit_width - 1), (1 << type_.bit_width - 1) - 1
    else:
        low, high = 0, min((1 << type_.bit_width) - 1, 2**63 - 1)
    return [(f"{test} AND {{0}} BETWEEN {low} AND {high}", "{0}")]


def _numbers(_type: pa.DataType) -> list[tuple[str, str]]:
    whole = f"typeof({{0}}) = 'integer' AND {{0}} BETWEEN -{_WHOLE} AND {_WHOLE}"
    return [("typeof({0}) = 'real'", "{0}"), (whole, "CAST({0} AS REAL)")]


def _decimals(_type: pa.DataType) -> list[tuple[str, str]]:
    return [
        ("typeof({0}) IN ('integer', 'text')", "CAST({0} AS TEXT)"),
        ("typeof({0}) = 'real' AND " + _HAS_DIGITS, _DIGITS),
    ]


_TEXTS = [("typeof({0}) = 'text'", "{0}")]
_FORMS: dict[Callable[[pa.DataType], bool], Callable[[pa.DataType], list[tuple[str, str]]]] = {
    types.is_integer: _integers,
    types.is_floating: _numbers,
    types.is_decimal: _decimals,
    types.is_boolean: lambda _: [("typeof({0}) = 'integer' AND {0} IN (0, 1)", "{0}")],
    types.is_binary: lambda _: [("typeof({0}) = 'blob'", "{0}")],
    types.is_date: lambda _: [("{0} = date({0})", "{0}")],
}
