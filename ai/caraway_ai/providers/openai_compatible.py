"""Models behind any server that speaks the OpenAI chat wire, over the `openai` client.

The client keeps connections, sends keys and retries. Bodies pass through as they are: its own
models would cost more than everything else here, and drop what they do not know.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

import httpx2
import openai
import orjson

from caraway_ai.chat.completeness import StreamCheck, check_completion
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatRequest, JsonObject
from caraway_ai.providers import event_streams
from caraway_ai.providers.connections import http_client
from caraway_ai.providers.failures import FailureReader
from caraway_ai.providers.openai_responses import OpenAIResponses, ResponsesEndpoint
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError, ModelInputError

_CHECK_S = 10.0
_DRAIN_S = 0.25
_DONE = b"[DONE]"
_JSON = "application/json"
_LARGEST_ERROR = 64 * 1024


@dataclass(frozen=True, slots=True)
class WireEndpoint:
    """Where a model is served, and how it is called there."""

    base_url: str
    model: str
    api_key: str | Callable[[], Awaitable[str]] | None = field(repr=False)
    key_param: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    lists_all: bool = False
    """True if a model that is missing in its listing does not exist."""
    has_listing: bool = True
    check_url: str | None = None
    """The request that takes the place of the listing."""
    socket: str | None = None
    """The path of a Unix socket to connect to."""
    responses: ResponsesEndpoint | None = None
    """The address of its responses API; None if it has none."""


class OpenAICompatible:
    """One model of one server."""

    def __init__(self, spec: ModelSpec, params: ModelParams, endpoint: WireEndpoint) -> None:
        self._name = spec.name
        self._endpoint = endpoint
        self._failures = FailureReader(spec.name, endpoint.key_param, params.secrets())
        silence_s = params.duration_s("silence_timeout", 120)
        connect_s = params.duration_s("connect_timeout", 10)
        self._timeout = httpx2.Timeout(silence_s, connect=connect_s, pool=60)
        self._whole_s = params.duration_s("request_timeout", 600)
        self._whole_timeout = httpx2.Timeout(self._whole_s, connect=connect_s, pool=60)
        self._client = _client(params, endpoint)
        # It refuses to call a server without a key, unless each request says so.
        self._headers: dict[str, str | openai.Omit] = (
            {"Authorization": openai.Omit()} if endpoint.api_key is None else {}
        )
        self.responses = (
            None
            if endpoint.responses is None
            else OpenAIResponses(spec.name, endpoint.responses, self, self._failures)
        )

    async def check(self) -> None:
        if not self._endpoint.has_listing:
            return
        try:
            async with asyncio.timeout(_CHECK_S):
                await self._look()
        except TimeoutError as exc:
            raise self._failures.of_transport(exc, is_timeout=True) from exc

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        response = await self._chat(request, is_stream=False)
        answer = self.read_whole(response, "choices")
        return check_completion(answer, self._name, request.get("n") or 1)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        check = StreamCheck(self._name, request.get("n") or 1)
        response = await self._chat(request, is_stream=True)
        async with aclosing(self.read_stream(response)) as chunks:
            async for chunk in chunks:
                yield check.check_chunk(chunk)
        check.end()

    def read_whole(self, response: httpx2.Response, needed: str) -> object:
        """Return the JSON of an answer.

        Raises:
            ModelError: it is an error, or is not JSON.
        """
        try:
            answer = orjson.loads(response.content)
        except ValueError as exc:
            raise self._failures.damaged("it is not JSON") from exc
        if isinstance(answer, dict) and answer.get("error") and needed not in answer:
            raise self._failures.in_stream(answer)
        return answer

    async def read_stream(self, response: httpx2.Response) -> AsyncGenerator[object, None]:
        """Yield the JSON of each event, until the stream ends or says that it is done.

        Raises:
            ModelError: an event is an error or damaged, or the connection was lost.
        """
        try:
            if _media_type(response) == _JSON:
                raise self._no_stream(await _beginning(response))
            async with aclosing(response.aiter_bytes()) as parts:
                async for event in event_streams.events(parts):
                    if event.data.strip() == _DONE:
                        await _drain(parts)
                        break
                    yield self._chunk(event)
        except httpx2.TimeoutException as exc:
            raise self._failures.of_transport(exc, is_timeout=True) from exc
        except (httpx2.HTTPError, httpx2.StreamError) as exc:
            raise self._failures.cut() from exc
        except ValueError as exc:
            raise self._failures.damaged(str(exc)) from exc
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._client.close()

    def _chunk(self, event: event_streams.ServerEvent) -> object:
        try:
            chunk = orjson.loads(event.data)
        except ValueError as exc:
            raise self._failures.damaged("a chunk of its stream is not JSON") from exc
        if isinstance(chunk, dict) and (chunk.get("error") or event.event == "error"):
            raise self._failures.in_stream(chunk)
        return chunk

    def _no_stream(self, body: bytes) -> ModelError:
        """Return the error for an answer that should have been a stream of events."""
        try:
            answer = orjson.loads(body)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and answer.get("error"):
            return self._failures.in_stream(answer)
        return self._failures.damaged("it is not a stream of events")

    async def _chat(self, request: ChatRequest, *, is_stream: bool) -> httpx2.Response:
        body = {**request, "model": self._endpoint.model, "stream": is_stream}
        if is_stream:
            options = request.get("stream_options")
            body["stream_options"] = {
                **(options if isinstance(options, dict) else {}), "include_usage": True
            }  # fmt: skip
        else:
            body.pop("stream_options", None)
        return await self.post("/chat/completions", body, is_stream=is_stream)

    async def post(
        self, url: str, body: JsonObject, *, is_stream: bool, has_query: bool = True
    ) -> httpx2.Response:
        """Send a body to a path or an address, with or without the query of the endpoint.

        Raises:
            ModelError: the provider refused, failed or does not respond.
        """
        options: openai.RequestOptions = {
            "headers": {"content-type": "application/json", **self._headers},
            "timeout": self._timeout if is_stream else self._whole_timeout,
        }
        if self._endpoint.query and not has_query:
            options["params"] = dict.fromkeys(self._endpoint.query, openai.Omit())
        try:
            content = orjson.dumps(body)
        except orjson.JSONEncodeError as exc:
            # Such as a number of more than 64 bits, or a schema that is nested too deeply.
            raise ModelInputError(
                f"model '{self._name}': the request cannot be sent as JSON: {exc}"
            ) from exc
        try:
            # Its own limit is on the time between two bytes of one try.
            async with asyncio.timeout(None if is_stream else self._whole_s):
                response: httpx2.Response = await self._client.post(
                    url,
                    cast_to=httpx2.Response,
                    content=content,
                    options=options,
                    stream=is_stream,
                    stream_cls=None,
                )
            return response
        except TimeoutError as exc:
            raise self._failures.of_transport(exc, is_timeout=True) from exc
        except openai.OpenAIError as exc:
            raise self._failure(exc) from exc

    async def _look(self) -> None:
        """Ask for the listing of the model, which no provider charges for."""
        try:
            try:
                await self._get(self._endpoint.check_url or f"/models/{self._endpoint.model}")
            except openai.NotFoundError:
                if self._endpoint.check_url is not None:
                    raise
                await self._look_in_listing()
        except openai.APIStatusError as exc:
            if exc.status_code in (405, 501) or (
                not self._endpoint.lists_all and exc.status_code in (400, 404)
            ):
                return  # The server has no listing; a call will tell.
            raise self._failure(exc) from exc
        except openai.OpenAIError as exc:
            raise self._failure(exc) from exc

    async def _look_in_listing(self) -> None:
        listing = await self._get("/models")
        data = listing.get("data") if isinstance(listing, dict) else None
        if not isinstance(data, list) or not self._endpoint.lists_all:
            return
        known = [str(each.get("id")).removeprefix("models/")
                 for each in data if isinstance(each, dict)]  # fmt: skip
        if self._endpoint.model not in known:
            raise ModelError(
                f"model '{self._name}': its provider has no model '{self._endpoint.model}', or the "
                "key may not use it; correct the model in 'from'",
                "not_found",
            )

    async def _get(self, path: str) -> JsonObject | None:
        response = await self._client.get(
            path,
            cast_to=httpx2.Response,
            options={"headers": self._headers, "timeout": _CHECK_S, "max_retries": 0},
        )
        try:
            return orjson.loads(response.content)  # type: ignore[no-any-return] # checked where it is used
        except ValueError:
            return None

    def _failure(self, exc: openai.OpenAIError) -> ModelError:
        if isinstance(exc, openai.APIStatusError):
            return self._failures.of_status(
                exc.status_code, exc.response.headers, exc.body or exc.response.content
            )
        return self._failures.of_transport(exc, is_timeout=isinstance(exc, openai.APITimeoutError))


async def _beginning(response: httpx2.Response) -> bytes:
    """Return the beginning of a body, in which an error has room."""
    found = b""
    async with aclosing(response.aiter_bytes()) as parts:
        async for part in parts:
            found += part
            if len(found) > _LARGEST_ERROR:
                break
    return found


def _media_type(response: httpx2.Response) -> str:
    given: str = response.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


async def _drain(parts: AsyncIterator[bytes]) -> None:
    """Read a body to its end, so that its connection serves the next call."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in parts:
                pass


def _client(params: ModelParams, endpoint: WireEndpoint) -> openai.AsyncOpenAI:
    client = openai.AsyncOpenAI(
        api_key=endpoint.api_key or "none",
        base_url=endpoint.base_url,
        default_headers=dict(endpoint.headers) or None,
        default_query=dict(endpoint.query) or None,
        max_retries=params.count("max_retries", 2),
        http_client=http_client(params.tls_context(), endpoint.socket),
    )
    # It reads missing arguments from the environment.
    client.organization = params.text("openai_org_id")
    client.project = params.text("openai_project_id")
    return client
