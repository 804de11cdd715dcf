"""Questions in words: natural language to SQL, and search."""

from collections.abc import Iterable, Mapping

from caraway.errors import BrokenResponseError
from caraway.requests import parsing, retries
from caraway.requests.parsing import Row
from caraway.requests.transport import ApiRequest, Transport
from caraway.statements.statements import encode_json

NSQL_JSON = "application/vnd.caraway.nsql.v1+json"
_JSON = "application/json"
# A model may write several statements before one works.
_TIMEOUT_S = 600.0


def nsql(transport: Transport, query: str, options: Mapping[str, object]) -> Row:
    """Return the rows that answer a question, and the statement that found them."""
    body = _post(transport, "/v1/nsql", f"{NSQL_JSON}, {_JSON};q=0.9", {"query": query, **options})
    if body.lstrip().startswith("["):
        rows = parsing.parse_list(body)
        return {"row_count": len(rows), "schema": {"fields": []}, "data": rows, "sql": ""}
    # Some runtimes send no schema for an answer without rows.
    answer = {"schema": {"fields": []}, "data": [], "sql": "", **parsing.parse_object(body)}
    return {"row_count": len(answer["data"]), **answer}


def nsql_generate_sql(transport: Transport, query: str, options: Mapping[str, object]) -> str:
    """Return the statement that a model writes for a question."""
    return _post(transport, "/v1/nsql", "application/sql", {"query": query, **options}).strip()


def search(transport: Transport, text: str, options: Mapping[str, object]) -> Row:
    """Return the matches of a search, each with all its fields."""
    answer = parsing.parse_object(_post(transport, "/v1/search", _JSON, {"text": text, **options}))
    found = answer.get("results", [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BrokenResponseError(
            f"expected a list of results, but the server sent: {answer!r:.200}"
        )
    return {**answer, "results": [_match(each) for each in found]}


def _match(sent: Row) -> Row:
    # The server leaves out empty fields, and calls the score `_score`.
    score = sent.get("_score", sent.get("score"))
    others = {name: value for name, value in sent.items() if name not in ("_score", "score")}
    return {"matches": {}, "data": {}, "primary_key": {}, **others, "score": score}


def _post(transport: Transport, path: str, accept: str, fields: Mapping[str, object]) -> str:
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


def _listed(value: object) -> object:
    if isinstance(value, str | bool | int) or not isinstance(value, Iterable):
        return value
    return list(value)
