"""Models of Anthropic, over the `anthropic` client, which keeps connections and retries."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import anthropic
import httpx2
import orjson

from caraway_ai.chat.completeness import StreamCheck, check_completion
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatModel, ChatRequest, JsonObject
from caraway_ai.providers import anthropic_answers, anthropic_requests, event_streams
from caraway_ai.providers.connections import http_client
from caraway_ai.providers.failures import FailureReader
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError

_ADDRESS = "https://api.anthropic.com"
_CHECK_S = 10.0


def build(spec: ModelSpec) -> ChatModel:
    """Build a model of Anthropic, or of a server with its wire at the param `endpoint`."""
    return AnthropicModel(spec, ModelParams(spec))


class AnthropicModel:
    """One model behind the messages API."""

    def __init__(self, spec: ModelSpec, params: ModelParams) -> None:
        self._name = spec.name
        self._model = params.model()
        self._failures = FailureReader(spec.name, "anthropic_api_key", params.secrets())
        connect_s = params.duration_s("connect_timeout", 10)
        self._timeout = httpx2.Timeout(
            params.duration_s("silence_timeout", 120), connect=connect_s, pool=60
        )
        self._whole_s = params.duration_s("request_timeout", 600)
        self._whole_timeout = httpx2.Timeout(self._whole_s, connect=connect_s, pool=60)
        token = params.text("anthropic_auth_token")
        key = None if token else params.secret("anthropic_api_key")
        address = params.address(params.text("endpoint") or _ADDRESS)
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            auth_token=token,
            base_url=address.rstrip("/").removesuffix("/v1"),
            max_retries=params.count("max_retries", 2),
            http_client=http_client(params.tls_context()),
        )

    async def check(self) -> None:
        try:
            async with asyncio.timeout(_CHECK_S):
                await self._client.get(
                    f"/v1/models/{self._model}",
                    cast_to=httpx2.Response,
                    options={"timeout": _CHECK_S, "max_retries": 0},
                )
        except TimeoutError as exc:
            raise self._failures.of_transport(exc, is_timeout=True) from exc
        except anthropic.NotFoundError as exc:
            if str(self._client.base_url).startswith(_ADDRESS):
                raise self._failure(exc) from exc
        except anthropic.AnthropicError as exc:
            raise self._failure(exc) from exc

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        response = await self._post(request, is_stream=False)
        try:
            answer = anthropic_answers.completion(orjson.loads(response.content))
        except ValueError as exc:
            raise self._failures.damaged(f"it is no message ({exc})") from exc
        return check_completion(answer, self._name)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        response = await self._post(request, is_stream=True)
        check, stream = StreamCheck(self._name, 1), anthropic_answers.MessageStream()
        try:
            async with aclosing(response.aiter_bytes()) as parts:
                async for event in event_streams.events(parts):
                    for chunk in stream.chunks_of_event(self._event(event)):
                        yield check.check_chunk(chunk)
        except httpx2.TimeoutException as exc:
            raise self._failures.of_transport(exc, is_timeout=True) from exc
        except (httpx2.HTTPError, httpx2.StreamError) as exc:
            raise self._failures.cut() from exc
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise self._failures.damaged("an event of its stream cannot be read") from exc
        finally:
            await response.aclose()
        check.end()
        if not stream.is_over:
            raise self._failures.cut()

    async def aclose(self) -> None:
        await self._client.close()

    def _event(self, event: event_streams.ServerEvent) -> JsonObject:
        document: JsonObject = orjson.loads(event.data)
        if document.get("type") == "error":
            raise self._failures.in_stream(document)
        return document

    async def _post(self, request: ChatRequest, *, is_stream: bool) -> httpx2.Response:
        body = anthropic_requests.translated(request, self._model)
        try:
            # As for the OpenAI wire.
            async with asyncio.timeout(None if is_stream else self._whole_s):
                response: httpx2.Response = await self._client.post(
                    "/v1/messages",
                    cast_to=httpx2.Response,
                    body={**body, "stream": is_stream},
                    options={"timeout": self._timeout if is_stream else self._whole_timeout},
                    stream=is_stream,
                    stream_cls=None,
                )
            return response
        except TimeoutError as exc:
            raise self._failures.of_transport(exc, is_timeout=True) from exc
        except anthropic.AnthropicError as exc:
            raise self._failure(exc) from exc

    def _failure(self, exc: anthropic.AnthropicError) -> ModelError:
        if isinstance(exc, anthropic.APIStatusError):
            return self._failures.of_status(exc.status_code, exc.response.headers, exc.body)
        timeouts = anthropic.APITimeoutError
        return self._failures.of_transport(exc, is_timeout=isinstance(exc, timeouts))
