"""Conversations with a model of the runtime, whose words arrive as it says them."""

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing

from caraway.errors import ApiError, BrokenResponseError
from caraway.requests import parsing, retries
from caraway.requests.parsing import Row
from caraway.requests.transport import ApiRequest, Transport
from caraway.statements.statements import encode_json

Message = dict[str, str]
MOST_MESSAGES = 500
_JSON = "application/json"
_EVENTS = "text/event-stream"
# A model may call tools for a long time before it says a word; the server sends signs of life.
_SILENCE_S = 120.0
_PROGRESS = {"X-Caraway-Completion-Progress": "enabled"}
_DATA = b"data:"
_END = b"[DONE]"


def models(transport: Transport) -> Sequence[str]:
    """Return the names of the models of the runtime."""
    request = ApiRequest("GET", "/v1/models", accept=_JSON)
    body = transport.text(request, retries.reads(transport.max_retries))
    found = parsing.parse_list(body, "data")
    return [str(each["id"]) for each in found if "id" in each]


def answer(
    transport: Transport, model: str, messages: Sequence[Message], *, shows_calls: bool
) -> Generator[str, None, None]:
    """Yield an answer as it arrives; with `shows_calls`, calls of tools are part of it.

    Raises:
        ApiError: the model failed, also in the middle.
        BrokenResponseError: the answer is not complete.
    """
    body = {"model": model, "messages": list(messages)[-MOST_MESSAGES:], "stream": True}
    request = ApiRequest(
        "POST",
        "/v1/chat/completions",
        accept=_EVENTS,
        body=encode_json(body),
        content_type=_JSON,
        timeout_s=_SILENCE_S,
        extra=_PROGRESS if shows_calls else {},
    )
    # An answer costs money: it is not requested twice.
    chunks = transport.chunks(request, retries.reads(0))
    with closing(chunks):
        is_complete = False
        try:
            for event in _events(chunks):
                if event == _END:
                    return
                for choice in _choices(event):
                    is_complete = is_complete or bool(choice.get("finish_reason"))
                    if text := (choice.get("delta") or {}).get("content"):
                        yield str(text)
        except ApiError as exc:
            if exc.status == 404 and exc.message == ApiError(404, "").message:
                # The runtime says no more, as its specification has it.
                message = f"there is no model '{model}'; `caraway models` lists them"
                raise ApiError(404, message, is_structured=True) from exc
            raise
    if not is_complete:
        raise BrokenResponseError("the answer ended before it was complete; ask again")


def _events(chunks: Iterable[bytes]) -> Generator[bytes, None, None]:
    held = b""
    for chunk in chunks:
        *lines, held = (held + chunk).split(b"\n")
        yield from (line[len(_DATA) :].strip() for line in lines if line.startswith(_DATA))


def _parsed(event: bytes) -> Row:
    try:
        document: object = json.loads(event)
    except ValueError as exc:
        raise BrokenResponseError(
            f"the server sent an event that is not JSON: {event!r:.200}"
        ) from exc
    if not isinstance(document, dict):
        raise BrokenResponseError(f"the server sent an event that is no object: {event!r:.200}")
    if isinstance(error := document.get("error"), dict):
        raise ApiError(500, str(error.get("message", "the model failed")))
    return document


def _choices(event: bytes) -> list[Row]:
    found = _parsed(event).get("choices") or []
    if not isinstance(found, list) or not all(map(_is_choice, found)):
        raise BrokenResponseError(f"the server sent an event of another form: {event!r:.200}")
    return found


def _is_choice(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("delta") or {}, dict)
