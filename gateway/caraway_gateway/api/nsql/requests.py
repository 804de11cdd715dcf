"""Parses questions, and the form in which they are to be answered."""

import difflib
import re
from dataclasses import dataclass

from caraway_assist.nsql import DataQuestion
from caraway_core.errors import InvalidRequestError
from caraway_core.json_texts import strict_json
from caraway_serving import negotiation
from caraway_serving.formats import Format
from caraway_serving.negotiation import Choice

_FIELDS = ("query", "model", "stream", "sample_data_enabled", "datasets", "prompt_cache_key")
_ALIASES = {"sampledataenabled": "sample_data_enabled"}
_SQL = "application/sql"
_OWN = "application/vnd.caraway.nsql.v1+json"
_VENDOR = re.compile(r"application/vnd\.[a-z0-9.\-]+\.nsql\.v1\+json", re.IGNORECASE)
_JSON, _EVENTS = "application/json", "text/event-stream"
_TYPES: dict[str, Format] = {
    _JSON: "json",
    _OWN: "versioned",
    # Only its name matters: the statement is text.
    _SQL: "text",
    "text/csv": "csv",
    "text/plain": "text",
}


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, and whether the answer is sent as an event."""

    question: DataQuestion
    is_streamed: bool


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """The form of an answer; with `is_sql_only`, the statement is not run."""

    choice: Choice
    is_sql_only: bool


def answer_form(accept: str | None, *, is_streamed: bool = False) -> AnswerChoice:
    """Choose one of the five forms. A client of streams may accept them, and name no form.

    Raises:
        RefusedRequestError: none is accepted.
    """
    text = accept or ""
    vendor = _VENDOR.search(text)
    known = {**_TYPES, _EVENTS: _TYPES[_JSON]} if is_streamed else _TYPES
    choice = negotiation.representation(_VENDOR.sub(_OWN, text), known)
    if choice.media_type == _OWN and vendor is not None:
        return AnswerChoice(Choice("versioned", vendor[0].lower()), is_sql_only=False)
    return AnswerChoice(choice, is_sql_only=choice.media_type == _SQL)


def parse(body: bytes) -> AskedQuestion:
    """Return the question in a body.

    Raises:
        InvalidRequestError: it holds none, or a field is wrong.
    """
    try:
        document = strict_json.parse(body)
    except ValueError as exc:
        raise InvalidRequestError(
            f'the request body is not JSON: {exc}; send {{"query": "How many orders are open?"}}'
        ) from exc
    if not isinstance(document, dict):
        raise InvalidRequestError('the request body must be an object with the field "query"')
    fields = {_ALIASES.get(str(name), str(name)): value for name, value in document.items()}
    for name in fields:
        if name not in _FIELDS:
            raise InvalidRequestError(_unknown(name))
    text = fields.get("query")
    if not isinstance(text, str) or not text.strip():
        raise InvalidRequestError('the field "query" must be a text: the question')
    question = DataQuestion(
        text.strip(),
        _text(fields, "model"),
        _names(fields.get("datasets")),
        _flag(fields, "sample_data_enabled"),
        _text(fields, "prompt_cache_key"),
    )
    return AskedQuestion(question, _flag(fields, "stream"))


def _text(fields: dict[str, object], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRequestError(f'the field "{name}" must be a text')
    return value or None


def _flag(fields: dict[str, object], name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidRequestError(f'the field "{name}" must be true or false')
    return bool(value)


def _names(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidRequestError('the field "datasets" must be a list of names')
    return tuple(value)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, _FIELDS, n=1)
    hint = f'; did you mean "{near[0]}"? Known' if near else "; known"
    known = ", ".join(f'"{each}"' for each in _FIELDS)
    return f'unknown field "{name[:100]}" in the request body{hint}: {known}'
