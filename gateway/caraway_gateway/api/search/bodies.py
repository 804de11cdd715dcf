"""Parses a search from a request body."""

import difflib

from caraway_assist.search.requests import SearchRequest
from caraway_core.errors import InvalidQueryError
from caraway_core.json_texts import strict_json
from caraway_core.sqltext.searching import MOST_HITS

_FIELDS = ("text", "datasets", "limit", "where", "additional_columns", "keywords")
_EXAMPLE = '{"text": "...", "datasets": ["docs"]}'


def parse(body: bytes) -> SearchRequest:
    """Parse a JSON object; a field that is null counts as missing.

    Raises:
        InvalidQueryError: the body is not a search; the message says what to do.
    """
    try:
        document = strict_json.parse(body)
    except ValueError as exc:
        message = f"the request body is not JSON: {exc}; send {_EXAMPLE}"
        raise InvalidQueryError(message) from exc
    if not isinstance(document, dict):
        raise InvalidQueryError(f"the request body must be an object such as {_EXAMPLE}")
    for name in document:
        if name not in _FIELDS:
            raise InvalidQueryError(_unknown_field(name))
    fields = {name: value for name, value in document.items() if value is not None}
    text = fields.get("text")
    if not isinstance(text, str):
        raise InvalidQueryError(f"'text' must be a string, what to search for; send {_EXAMPLE}")
    return SearchRequest(
        text=text,
        datasets=_strings(fields, "datasets"),
        limit=_limit(fields),
        where=_where(fields),
        additional_columns=_strings(fields, "additional_columns"),
        keywords=_strings(fields, "keywords"),
    )


def _strings(fields: dict[str, object], name: str) -> tuple[str, ...]:
    values = fields.get(name, [])
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise InvalidQueryError(f"'{name}' must be an array of strings")
    return tuple(values)


def _limit(fields: dict[str, object]) -> int:
    limit = fields.get("limit", MOST_HITS)
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise InvalidQueryError(f"'limit' must be an integer from 1 to {MOST_HITS}")
    return limit


def _where(fields: dict[str, object]) -> str | None:
    where = fields.get("where", "")
    if not isinstance(where, str):
        raise InvalidQueryError("'where' must be a string, a predicate of SQL")
    return where if where.strip() else None


def _unknown_field(name: str) -> str:
    near = difflib.get_close_matches(name, _FIELDS, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ";"
    return f"unknown field '{name[:100]}' in the request body{hint} known: {', '.join(_FIELDS)}"
