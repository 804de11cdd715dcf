"""Questions in words: natural language to SQL, and search."""

from collections.abc import Iterable, Mapping
from typing import Any

from caraway import parsing, retries
from caraway.parsing import Row
from caraway.statements import encode_json
from caraway.transport import ApiRequest, Transport

NSQL_JSON = "application/vnd.caraway.nsql.v1+json"
_JSON = "application/json"
# A model may write several statements before one works.
_TIMEOUT_S = 600.0


def nsql(transport: Transport, query: str, options: Mapping[str, Any]) -> Row:
    """Return the rows that answer a question, and the statement that found them."""
    body = _post(transport, "/v1/nsql", f"{NSQL_JSON}, {_JSON};q=0.9", {"query": query, **options})
    if body.lstrip().startswith("["):
        rows = parsing.parse_list(body)
        return {"row_count": len(rows), "data": rows}
    return parsing.parse_object(body)


def search(transport: Transport, text: str, options: Mapping[str, Any]) -> Row:
    """Return the matches of a search."""
    return parsing.parse_object(_post(transport, "/v1/search", _JSON, {"text": text, **options}))


def _post(transport: Transport, path: str, accept: str, fields: Mapping[str, Any]) -> str:
    # Options that were not given are left out: their defaults are the server's.
    given = {name: _listed(value) for name, value in fields.items() if value is not None}
    request = ApiRequest(
        "POST",
        path,
        accept=accept,
        body=encode_json(given),
        content_type=_JSON,
        timeout_s=_TIMEOUT_S,
    )
    return transport.text(request, retries.reads(transport.max_retries))


def _listed(value: Any) -> Any:
    if isinstance(value, str | bool | int) or not isinstance(value, Iterable):
        return value
    return list(value)
