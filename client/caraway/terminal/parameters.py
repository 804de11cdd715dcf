"""Parses `NAME=VALUE` as a statement parameter."""

import json


def parse_parameter(text: str) -> tuple[str, object]:
    """Parse a value as JSON, or else as a string.

    `n=1` is a number, `ok=true` a boolean, `s=abc` and `s="1"` are strings.

    Raises:
        ValueError: the name or the `=` is missing.
    """
    name, equals, content = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"'{text}' is not a valid parameter; use NAME=VALUE")
    return name.strip(), _typed(content)


def _typed(content: str) -> object:
    try:
        return json.loads(content, parse_constant=_refuse)
    except ValueError:
        return content


def _refuse(word: str) -> object:
    # Python's parser accepts NaN and Infinity, but they are not JSON: the server rejects them.
    raise ValueError(word)
