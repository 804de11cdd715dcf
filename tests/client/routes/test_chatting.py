"""Answers of models as they arrive, and streams that are none."""

import json
from collections.abc import Generator, Iterable
from typing import Any

import pytest

from caraway.errors import ApiError, BrokenResponseError
from caraway.requests.transport import ApiRequest
from caraway.routes import chatting

DONE = b"data: [DONE]\n\n"


def said(text: object, **more: object) -> bytes:
    choice = {"delta": {"content": text}, **more}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


class Transport:
    """Answers each request with some chunks, or with an error."""

    max_retries = 0

    def __init__(self, *chunks: bytes, error: Exception | None = None, text: str = "") -> None:
        self._chunks, self._error, self._text = chunks, error, text
        self.request: ApiRequest | None = None

    def chunks(self, request: ApiRequest, _policy: object) -> Generator[bytes, None, None]:
        self.request = request
        yield from self._chunks
        if self._error is not None:
            raise self._error

    def text(self, _request: ApiRequest, _policy: object) -> str:
        return self._text


def answer(transport: Any, *, count: int = 1, shows_calls: bool = False) -> str:
    messages = [{"role": "user", "content": str(number)} for number in range(count)]
    return "".join(chatting.answer(transport, "m", messages, shows_calls=shows_calls))


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([said("a"), said("b"), DONE], "ab"),
        ([said("a") + said("é") + DONE], "aé"),
        ([DONE], ""),
        ([said(None), said(""), said("a", finish_reason="stop")], "a"),
        ([b": a sign of life\n\n", b"event: x\n", said("a"), DONE], "a"),
        ([b'data: {"choices": []}\n', b'data: {"choices": null}\r\n', b"data: {}\n", DONE], ""),
        ([b'data:{"choices":[{"delta":{"content":"a"}}]}\r\n\r\n', DONE], "a"),
        ([bytes([each]) for each in said("abc") + DONE], "abc"),
        ([said("a"), DONE, said("late")], "a"),
    ],
)
def test_answers(chunks: Iterable[bytes], text: str) -> None:
    assert answer(Transport(*chunks)) == text


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([], "ended before it was complete"),
        ([said("a")], "ended before it was complete"),
        ([said("a"), DONE[:-3]], "ended before it was complete"),
        ([b"data: <p>\n"], "not JSON"),
        ([b"data: [1]\n"], "no object"),
        ([b'data: {"choices": [1]}\n'], "another form"),
        ([b'data: {"choices": {"a": 1}}\n'], "another form"),
        ([b'data: {"choices": 5}\n'], "another form"),
        ([b'data: {"choices": [{"delta": "a"}]}\n'], "another form"),
    ],
)
def test_streams_that_are_no_answer(chunks: Iterable[bytes], words: str) -> None:
    with pytest.raises(BrokenResponseError, match=words):
        answer(Transport(*chunks))


def test_errors_in_the_middle() -> None:
    with pytest.raises(ApiError, match="the provider is away"):
        answer(Transport(said("a"), b'data: {"error": {"message": "the provider is away"}}\n'))
    with pytest.raises(ApiError, match="the model failed"):
        answer(Transport(b'data: {"error": {}}\n'))


def test_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(ApiError, match="there is no model 'm'") as caught:
        answer(Transport(error=ApiError(404, "")))
    assert caught.value.is_structured
    with pytest.raises(ApiError, match="no such route"):
        answer(Transport(error=ApiError(404, "no such route")))


@pytest.mark.parametrize("shows_calls", [False, True])
def test_requests_have_the_last_messages(shows_calls: bool) -> None:
    transport = Transport(DONE)
    answer(transport, count=chatting.MOST_MESSAGES + 2, shows_calls=shows_calls)
    assert transport.request is not None
    assert transport.request.body is not None
    body = json.loads(transport.request.body)
    assert (body["model"], body["stream"]) == ("m", True)
    assert len(body["messages"]) == chatting.MOST_MESSAGES
    assert body["messages"][0]["content"] == "2"
    assert bool(transport.request.extra) is shows_calls


def models(text: str) -> list[str]:
    transport: Any = Transport(text=text)
    return list(chatting.models(transport))


def test_models() -> None:
    assert models('{"data": [{"id": "a"}, {"no": 1}, {"id": 5}]}') == ["a", "5"]


@pytest.mark.parametrize("text", ["", "<p>", "[]", '{"data": null}', "{}", '{"data": [1]}'])
def test_lists_of_models_that_are_none(text: str) -> None:
    if text == "[]":
        assert models(text) == []
        return
    with pytest.raises(BrokenResponseError):
        models(text)
