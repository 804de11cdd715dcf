"""Models of Bedrock by Converse, over `boto3`, whose calls block threads of their own."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import boto3
from botocore import exceptions
from botocore.config import Config
from botocore.eventstream import ParserError
from botocore.parsers import ResponseParserError
from urllib3.exceptions import ProtocolError

from caraway_ai.chat.completeness import StreamCheck, check_completion
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatModel, ChatRequest, JsonObject
from caraway_ai.providers import bedrock_wire
from caraway_ai.providers.failures import FailureReader
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError

T = TypeVar("T")
_CALLS = 256
_MOST_WAITING = 256
_STATUS = {
    "AccessDeniedException": 403,
    "ExpiredTokenException": 403,
    "IncompleteSignature": 403,
    "InvalidSignatureException": 403,
    "UnrecognizedClientException": 403,
    "ResourceNotFoundException": 404,
    "ThrottlingException": 429,
    "throttlingException": 429,
    "ServiceQuotaExceededException": 402,
    "ModelTimeoutException": 504,
    "ModelNotReadyException": 503,
    "ServiceUnavailableException": 503,
    "serviceUnavailableException": 503,
    "ValidationException": 400,
    "validationException": 400,
}


def build(spec: ModelSpec) -> ChatModel:
    """Build a model of Bedrock; its name is the id of a model or of an inference profile."""
    return BedrockModel(spec, ModelParams(spec))


class BedrockModel:
    """One model behind Converse."""

    def __init__(self, spec: ModelSpec, params: ModelParams) -> None:
        self._name = spec.name
        self._model = params.model()
        self._failures = FailureReader(spec.name, "aws_access_key_id", params.secrets())
        self._guardrail = _guardrail(params)
        self._threads = ThreadPoolExecutor(_CALLS, thread_name_prefix="bedrock")
        address = params.text("endpoint")
        authority = params.path("tls_root_certificate")
        try:
            self._session = boto3.Session(
                aws_access_key_id=params.text("aws_access_key_id"),
                aws_secret_access_key=params.text("aws_secret_access_key"),
                aws_session_token=params.text("aws_session_token"),
                region_name=params.text("aws_region"),
                profile_name=params.text("aws_profile"),
            )
            self._client: Any = self._session.client(
                "bedrock-runtime",
                endpoint_url=params.address(address) if address else None,
                verify=None if authority is None else str(authority),
                config=Config(
                    connect_timeout=params.duration_s("connect_timeout", 10),
                    read_timeout=params.duration_s("silence_timeout", 120),
                    retries={"total_max_attempts": params.count("max_retries", 2) + 1,
                             "mode": "standard"},
                    max_pool_connections=_CALLS,
                ),
            )  # fmt: skip
        except exceptions.NoRegionError as exc:
            raise params.wrong("it needs the param 'aws_region'") from exc
        except exceptions.BotoCoreError as exc:
            raise params.wrong(f"its client cannot be made: {exc}") from exc

    async def check(self) -> None:
        """Check that there are credentials; only a call shows whether they may call the model."""
        credentials = await self._run(self._session.get_credentials)
        if credentials is None:
            raise self._no_credentials()

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        arguments = self._arguments(request)
        try:
            answer = await self._run(lambda: self._client.converse(**arguments))
        except Exception as exc:
            raise self._failure(exc) from exc
        try:
            return check_completion(bedrock_wire.completion(answer), self._name)
        except (KeyError, TypeError) as exc:
            raise self._failures.damaged(f"it has no {exc}") from exc

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        arguments = self._arguments(request)
        try:
            answer = await self._run(lambda: self._client.converse_stream(**arguments))
        except Exception as exc:
            raise self._failure(exc) from exc
        check, stream = StreamCheck(self._name, 1), bedrock_wire.ConverseStream()
        events = _ThreadedEvents(answer["stream"], self._threads)
        try:
            while (event := await events.next()) is not None:
                for chunk in stream.chunks_of_event(event):
                    yield check.check_chunk(chunk)
        except (ModelError, GeneratorExit, asyncio.CancelledError):
            raise
        except (KeyError, TypeError) as exc:
            raise self._failures.damaged("an event of its stream cannot be read") from exc
        except Exception as exc:
            raise self._failure(exc) from exc
        finally:
            events.close()
        check.end()

    async def aclose(self) -> None:
        self._threads.shutdown(wait=False)
        await asyncio.to_thread(self._client.close)

    def _arguments(self, request: ChatRequest) -> JsonObject:
        arguments = bedrock_wire.translated(request, self._model)
        return {**arguments, "guardrailConfig": self._guardrail} if self._guardrail else arguments

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _failure(self, exc: Exception) -> ModelError:
        if isinstance(exc, exceptions.ClientError):
            error = exc.response.get("Error", {})
            meta = exc.response.get("ResponseMetadata", {})
            code = str(error.get("Code", ""))
            status = _STATUS.get(code) or meta.get("HTTPStatusCode") or 500
            headers = meta.get("HTTPHeaders") or {}
            return self._failures.of_status(status, headers, {"message": error.get("Message")})
        if isinstance(exc, exceptions.NoCredentialsError | exceptions.PartialCredentialsError):
            return self._no_credentials()
        if isinstance(exc, exceptions.ParamValidationError):
            return self._failures.of_status(400, {}, {"message": str(exc)})
        if isinstance(exc, ResponseParserError | ParserError):
            return self._failures.damaged("it cannot be read")
        if isinstance(exc, ProtocolError):
            return self._failures.cut()
        timeouts = exceptions.ConnectTimeoutError | exceptions.ReadTimeoutError
        return self._failures.of_transport(exc, is_timeout=isinstance(exc, timeouts))

    def _no_credentials(self) -> ModelError:
        return ModelError(
            f"model '{self._name}': there are no credentials; give 'aws_access_key_id' and "
            "'aws_secret_access_key', or a role to the process",
            "auth",
        )


class _ThreadedEvents:
    """The events of a stream that blocks, read ahead by a thread, up to a limit."""

    def __init__(self, stream: Any, threads: ThreadPoolExecutor) -> None:
        self._stream = stream
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._events: deque[object] = deque()
        self._news = asyncio.Event()
        self._room = threading.Semaphore(_MOST_WAITING)
        self._is_closed = False
        threads.submit(self._read)

    async def next(self) -> Any:
        """Return the next event, or None at the end.

        Raises: what the stream raised.
        """
        while not self._events:
            self._news.clear()
            await self._news.wait()
        event = self._events.popleft()
        self._room.release()
        if isinstance(event, Exception):
            raise event
        return event

    def close(self) -> None:
        """End the connection, and with it the thread."""
        self._is_closed = True
        self._room.release()
        with contextlib.suppress(RuntimeError):  # The model has ended, and its threads with it.
            self._threads.submit(self._end)

    def _end(self) -> None:
        # To close it waits for the thread that reads. Only the end of the socket wakes that one.
        raw = getattr(self._stream, "_raw_stream", None)
        with contextlib.suppress(Exception):
            if raw is not None:
                raw.shutdown()
        with contextlib.suppress(Exception):
            self._stream.close()

    def _read(self) -> None:
        try:
            for event in self._stream:
                self._room.acquire()
                if self._is_closed:
                    return
                self._tell(event)
        except Exception as exc:  # noqa: BLE001 -- the reader raises it
            self._tell(exc)
        else:
            self._tell(None)

    def _tell(self, event: Any) -> None:
        def add() -> None:
            self._events.append(event)
            self._news.set()

        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(add)


def _guardrail(params: ModelParams) -> JsonObject | None:
    identifier = params.text("bedrock_guardrail_identifier")
    if identifier is None:
        return None
    version = params.text("bedrock_guardrail_version") or "DRAFT"
    return {"guardrailIdentifier": identifier, "guardrailVersion": version}
