"""Parses a statement and its parameters from a request body."""

import difflib
from dataclasses import dataclass, field

from caraway_core.errors import InvalidQueryError
from caraway_core.json_texts import strict_json
from caraway_core.sqltext import placeholders

_FIELDS = ("sql", "parameters")


@dataclass(frozen=True, slots=True)
class SqlBody:
    """A statement and its parameters by placeholder name."""

    sql: str
    parameters: dict[str, object] = field(default_factory=dict)


def is_json(content_type: str | None) -> bool:
    """Return whether a body of this type is JSON; otherwise it is plain SQL."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")


def parse(body: bytes, content_type: str | None) -> SqlBody:
    """Parse JSON if the content type is JSON, otherwise plain SQL.

    Raises:
        InvalidQueryError: the body does not match its content type.
    """
    text = _text(body)
    return _from_json(text) if is_json(content_type) else SqlBody(text)


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidQueryError(
            f"the request body is not UTF-8: byte {exc.start} ({body[exc.start]:#04x}) cannot be "
            "decoded; send the statement encoded as UTF-8"
        ) from exc


def _from_json(text: str) -> SqlBody:
    try:
        document = strict_json.parse(text)
    except ValueError as exc:
        raise InvalidQueryError(
            f'the request body is not JSON: {exc}; send {{"sql": "SELECT ...", "parameters": '
            "{...}}, or plain SQL with Content-Type: text/plain"
        ) from exc
    if not isinstance(document, dict):
        raise InvalidQueryError('the request body must be an object with the field "sql"')
    for name in document:
        if name not in _FIELDS:
            raise InvalidQueryError(_unknown_field(name))
    sql = document.get("sql")
    if not isinstance(sql, str):
        raise InvalidQueryError('the field "sql" must be a string that holds the statement')
    return SqlBody(sql, _parameters(document.get("parameters")))


def _parameters(values: object) -> dict[str, object]:
    if values is None:
        return {}
    if not isinstance(values, dict | list):
        raise InvalidQueryError(
            'the field "parameters" must be an object (for :name and $name) or an array (for $1 '
            "and ?)"
        )
    return placeholders.by_name(values)


def _unknown_field(name: str) -> str:
    near = difflib.get_close_matches(name, _FIELDS, n=1)
    hint = f'; did you mean "{near[0]}"? Known' if near else "; known"
    return f'unknown field "{name}" in the request body{hint}: "sql", "parameters"'
