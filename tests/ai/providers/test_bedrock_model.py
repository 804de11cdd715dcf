"""Bedrock over `boto3`, against a server that speaks Converse and its binary streams."""

import asyncio
import json
import struct
import zlib
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.protocols import ChatModel
from caraway_ai.providers import bedrock_wire
from caraway_ai.providers.bedrock_model import BedrockModel
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelAwayError, ModelError
from tests.kit.listening import listening
from tests.kit.models import USER

USE = {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}}
USAGE = {"inputTokens": 2, "outputTokens": 3, "totalTokens": 5}
ANSWER = {"output": {"message": {"role": "assistant", "content": [{"text": "hello"}, USE]}},
          "stopReason": "tool_use", "usage": USAGE, "metrics": {"latencyMs": 1}}  # fmt: skip
EVENTS: list[tuple[str, Any]] = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "lo"}}),
    ("contentBlockStart",
     {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}}),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": USAGE, "metrics": {"latencyMs": 1}}),
]  # fmt: skip


def frame(kind: str, payload: Any, type_: str = "event") -> bytes:
    """Return one message of an AWS event stream."""
    headers = b""
    names = {":message-type": type_, f":{type_}-type": kind, ":content-type": "application/json"}
    for name, value in names.items():
        headers += bytes([len(name)]) + name.encode() + b"\x07"
        headers += struct.pack("!H", len(value)) + value.encode()
    body = json.dumps(payload).encode()
    head = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = head + struct.pack("!I", zlib.crc32(head)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


class Bedrock:
    def __init__(self) -> None:
        self.answer: Response = JSONResponse(ANSWER)
        self.frames = [frame(*event) for event in EVENTS]
        self.hold: asyncio.Event | None = None
        self.requests: list[Any] = []
        self.app = Starlette(
            routes=[
                Route("/model/{id}/converse", self._converse, methods=["POST"]),
                Route("/model/{id}/converse-stream", self._stream, methods=["POST"]),
            ]
        )

    async def _converse(self, request: Request) -> Response:
        assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256")
        self.requests.append(await request.json())
        return self.answer

    async def _stream(self, request: Request) -> Response:
        async def parts() -> Any:
            for part in self.frames:
                yield part
            if self.hold is not None:
                await self.hold.wait()

        return StreamingResponse(parts(), media_type="application/vnd.amazon.eventstream")


def nova(url: str, **params: str) -> ChatModel:
    keys = {"aws_access_key_id": "AKIA123456", "aws_secret_access_key": "a-secret-key"}
    full = {"endpoint": url, "aws_region": "eu-west-1", "max_retries": "0", **keys, **params}
    return ModelSpec("m", "bedrock", "nova", full).build()


async def test_answers_are_translated() -> None:
    server = Bedrock()
    async with listening(server.app) as url:
        model = nova(url, bedrock_guardrail_identifier="g")
        await model.check()
        whole = await model.chat({"messages": USER, "temperature": 0.5, "max_tokens": 9})
        chunks = [chunk async for chunk in model.stream({"messages": USER})]
        await model.aclose()
    message = whole["choices"][0]["message"]
    assert (message["content"], whole["choices"][0]["finish_reason"]) == ("hello", "tool_calls")
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert whole["usage"]["total_tokens"] == 5
    sent = server.requests[0]
    assert sent["inferenceConfig"] == {"maxTokens": 9, "temperature": 0.5}
    assert sent["guardrailConfig"]["guardrailIdentifier"] == "g"
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == "hello"
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert "".join(call["function"]["arguments"] for call in calls) == "{}"
    assert chunks[-1]["usage"]["total_tokens"] == 5


async def test_failures_have_codes_and_broken_streams_are_errors() -> None:
    server = Bedrock()
    async with listening(server.app) as url:
        model = nova(url)
        for error, status, code in (
            ("ThrottlingException", 429, "model.rate_limit"),
            ("AccessDeniedException", 403, "model.auth"),
            ("ResourceNotFoundException", 404, "model.not_found"),
            ("ValidationException", 400, "model.invalid"),
            ("ModelTimeoutException", 408, "model.timeout"),
        ):
            headers = {"x-amzn-errortype": error}
            server.answer = JSONResponse({"message": "no"}, status, headers=headers)
            with pytest.raises(ModelError) as caught:
                await model.chat({"messages": USER})
            assert caught.value.code == code
        server.frames = server.frames[:3]
        with pytest.raises(ModelError, match="before the answer was complete"):
            async for _ in model.stream({"messages": USER}):
                pass
        thrown = frame("throttlingException", {"message": "slow down"}, "exception")
        server.frames = [*server.frames, thrown]
        with pytest.raises(ModelAwayError, match="limits the rate"):
            async for _ in model.stream({"messages": USER}):
                pass
        await model.aclose()


async def test_a_stream_that_is_closed_ends_its_thread() -> None:
    server = Bedrock()
    server.hold = asyncio.Event()
    server.frames = server.frames[:2]
    async with listening(server.app) as url:
        model = nova(url)
        stream = model.stream({"messages": USER})
        await anext(stream)
        await stream.aclose()
        assert isinstance(model, BedrockModel)
        # It waits for both threads: the server has not ended its stream.
        await asyncio.to_thread(model._threads.shutdown)
        server.hold.set()
        await model.aclose()


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"n": 2}, "n"), ({"seed": 1}, "seed"), ({"parallel_tool_calls": False},
                                                "parallel_tool_calls"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "none"},
         "tool_choice"),
        ({"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}]},
         "messages[0].content[0].image_url.url"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(more: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestFieldError) as caught:
        bedrock_wire.translated({"messages": USER, **more}, "nova")
    assert caught.value.param == param
