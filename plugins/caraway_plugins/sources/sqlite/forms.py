"""The SQL by which a column is read, so that each value has the type of the column or is an error.

A column of SQLite holds values of any type. It is read by an expression that fails for other
values, with an error of a JSON function: no other function has errors that name the column.
"""

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

types = pa.types
_UNFIT = re.compile(r"bad JSON path: 'unfit (.*)0'", re.DOTALL)
_MISMATCH = re.compile(r"Type mismatch in column (\d+)")
_FILLERS = {pa.int64(): "0", pa.float64(): "0.0", pa.binary(): "x''", pa.string(): "''"}
_CHECKED = "CASE {1} WHEN {0} IS NULL THEN NULL ELSE json_extract('[]', {2} || ({0} IS NULL)) END"
"""No test of a right value is true for NULL, and few values are NULL."""
_NO_BLOB = "CASE WHEN +{0} >= x'' THEN json_extract('[]', {1} || ({0} IS NULL)) ELSE {0} END"
"""Only blobs are at least as large as the empty one; this costs less than `typeof`."""
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


def affine_type(written: str) -> pa.DataType | None:
    """Return the type that a table gives to values where it can, if it declares this for a column.

    It converts numbers that are written to a column of texts, integers to doubles, and doubles
    without a fraction and texts of integers to integers.
    """
    parts = (type_ for part, type_ in _PARTS if part in written.upper())
    found = next(parts, None) if written.isascii() else None
    return found if found in (pa.string(), pa.float64(), pa.int64()) else None


def unchecked(column: str, name: str, type_: pa.DataType, affine: pa.DataType | None) -> str:
    """Return SQL whose values the reader checks by `checked_values`, or nothing: it cannot.

    The driver has an error for a value of another type, or converts it to a text that is no date.
    It takes blobs for texts. Texts and doubles need a column that has no other values.
    """
    if types.is_integer(type_) or types.is_boolean(type_):
        return column
    if types.is_float64(type_) and type_ == affine:
        return column
    is_text = types.is_string(type_) and type_ == affine
    if is_text or types.is_date(type_) or types.is_timestamp(type_):
        return _NO_BLOB.format(column, _path(name))
    return ""


def checked(
    column: str, name: str, type_: pa.DataType | None, affine: pa.DataType | None = None
) -> str:
    """Return SQL whose values have the type, for a quoted column with this name."""
    path = _path(name)
    is_short = type_ is not None and types.is_signed_integer(type_) and affine == pa.int64()
    found = [(_kept_bits(type_), "{0}")] if is_short else _cases(type_)
    cases = " ".join(f"WHEN {test} THEN {value}" for test, value in found)
    return _CHECKED.format(column, cases.format(column), path)


def filler(type_: pa.DataType) -> str:
    """Return a value as answers have it for this type."""
    return _FILLERS[_driver_type(type_)]


def checked_values(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return values of the driver whose type is that of the fillers.

    Raises:
        pa.ArrowInvalid: a value has another type, by which the driver chose that of the column; or
            a text is not UTF-8, or a number is no boolean.
    """
    if values.type != _driver_type(type_):
        raise pa.ArrowInvalid(f"a value of type {values.type}")
    values.validate(full=True)
    if types.is_boolean(type_):
        found = pc.min_max(values)
        if not (found["min"].as_py() or 0) >= 0 or not (found["max"].as_py() or 0) <= 1:
            raise pa.ArrowInvalid("a number that is no boolean")
    return values


def unfit(message: str, names: Sequence[str]) -> str | None:
    """Return the name of the column of which an error says that a value has another type.

    The errors of the driver itself have its place in the answer, whose columns have these names.
    """
    if (match := _UNFIT.search(message)) is not None:
        return match[1].replace("''", "'")
    match = _MISMATCH.search(message)
    return match and names[int(match[1])]


def _path(name: str) -> str:
    return "'unfit " + name.replace("'", "''") + "'"


def _driver_type(type_: pa.DataType) -> pa.DataType:
    if types.is_integer(type_) or types.is_boolean(type_):
        return pa.int64()
    if types.is_floating(type_):
        return pa.float64()
    return pa.binary() if types.is_binary(type_) else pa.string()


def _cases(type_: pa.DataType | None) -> list[tuple[str, str]]:
    """Return the test of each form of right values, and their SQL in the answer."""
    if type_ is None:
        return [
            ("typeof({0}) = 'real' AND " + _HAS_DIGITS, _DIGITS),
            ("typeof({0}) <> 'blob'", "CAST({0} AS TEXT)"),
        ]
    return next((made(type_) for test, made in _FORMS.items() if test(type_)), _TEXTS)


def _kept_bits(type_: pa.DataType) -> str:
    """Return the test of integers in a column that has no doubles without a fraction.

    Bits of other values are those of another number, and no text is equal to one. It costs two
    thirds of `typeof`. The double -2**63, which a table does not convert, passes as that integer.
    """
    if type_ == pa.int64():
        return "+{0} = ({0} | 0)"
    shift = 64 - type_.bit_width
    return f"+{{0}} = ({{0}} << {shift} >> {shift})"


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
