"""Plain YAML scalars as values, after the YAML 1.2 core schema.

PyYAML follows YAML 1.1, in which `no` is a boolean, `1:30` is ninety and `2024-01-01` is a date.
Manifests are read by the newer rules, so a value that looks like text stays text.
"""

import math
import re

Scalar = None | bool | int | float | str

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]{1,400}|0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,300}|[0-9]{1,300}(\.[0-9]{0,300})?)([eE][-+]?[0-9]{1,9})?")


class WrittenInt(int):
    """A whole number that remembers how it was written: an account id of 007 must stay 007."""

    text: str


class WrittenFloat(float):
    """A number that remembers how it was written: 1.10 must stay 1.10 where text is meant."""

    text: str


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        whole = WrittenInt(int(text, 0 if text[:2] in ("0o", "0x") else 10))
        whole.text = text
        return whole
    # An infinite number could not be sent to clients, whose JSON has none.
    if _FLOAT.fullmatch(text) and math.isfinite(number := WrittenFloat(text)):
        number.text = text
        return number
    return text


def written(value: object) -> str:
    """Return a scalar as text, the way it was written; booleans as `true` and `false`.

    Raises:
        ValueError: it is a list, a mapping or nothing.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case WrittenInt() | WrittenFloat():
            return value.text
        case int() | float():
            return str(value)
    raise ValueError("must be a text, a number, true or false")


def plain(value: object) -> object:
    """Return a value of lists and mappings with numbers that are only numbers."""
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case WrittenInt():
            return int(value)
        case WrittenFloat():
            return float(value)
    return value
