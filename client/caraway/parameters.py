"""Reading `name=value` as the parameter of a statement."""

import json


def parse(text: str) -> tuple[str, object]:
    """`n=1` is a number, `ok=true` a boolean, `s=abc` and `s="1"` are strings.

    Raises:
        ValueError: there is no name, or no `=`.
    """
    name, equals, content = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"'{text}' is not a parameter; write NAME=VALUE")
    return name.strip(), _typed(content)


def _typed(content: str) -> object:
    try:
        return json.loads(content, parse_constant=_refuse)
    except ValueError:
        return content


def _refuse(word: str) -> object:
    # NaN and Infinity are not JSON, so a server could not read them back.
    raise ValueError(word)
