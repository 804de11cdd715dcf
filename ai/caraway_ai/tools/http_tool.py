"""A tool of the manifest that calls an HTTP service."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from caraway_ai.providers.params import scrubbed
from caraway_ai.tools.headers import authorization, parsed_headers, secrets_in
from caraway_ai.tools.protocol import Arguments, JsonSchema, ToolCaller
from caraway_core.errors import DeadlineError, ToolError
from caraway_core.json_texts import strict_json
from caraway_core.manifest.texts.units import seconds
from caraway_core.manifest.values.declared_tools import DeclaredTool

_IN_URL = re.compile(r"\{(\w+)\}")
_WITH_BODY = ("PATCH", "POST", "PUT")
_DEFAULT_TIMEOUT_S = 30.0
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpService:
    """Where a tool sends its requests; `headers` may hold secrets."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = _DEFAULT_TIMEOUT_S

    @classmethod
    def from_params(cls, declared: DeclaredTool, params: Mapping[str, str]) -> "HttpService":
        """Read the params of a tool, with secrets filled in.

        Raises:
            ToolError: a header is not one.
        """
        headers = {"accept": "application/json, text/*;q=0.9, */*;q=0.5"}
        headers |= parsed_headers(declared.name, params.get("headers", ""))
        if token := params.get("auth_token"):
            headers["authorization"] = authorization(declared.name, "auth_token", token)
        timeout_s = seconds(params["timeout"]) if "timeout" in params else _DEFAULT_TIMEOUT_S
        url = params.get("url", declared.target)
        return cls(url, params.get("method", "GET").upper(), headers, timeout_s)


class HttpTool:
    """Sends the arguments in the path, the query or a JSON body, and returns the answer.

    It follows no redirects: only the address in the manifest is used.
    """

    def __init__(
        self,
        declared: DeclaredTool,
        service: HttpService,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.name = declared.name
        self.description = declared.description or f"Calls {declared.target}"
        self.parameters: JsonSchema = declared.parameters
        self._service = service
        self._secrets = secrets_in(service.headers)
        self._transport = transport

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        """Return the body of the answer: a JSON value, or text.

        Raises:
            ToolError: the service refuses, cannot be reached or answers too much.
            DeadlineError: it does not answer in time.
        """
        service = self._service
        url, rest = _addressed(service.url, arguments)
        sent: dict[str, Any] = {"json": rest} if service.method in _WITH_BODY else {}
        if not sent and rest:
            sent = {"params": {key: _text(value) for key, value in rest.items()}}
        client = httpx.AsyncClient(transport=self._transport, timeout=service.timeout_s)
        try:
            async with (
                client,
                client.stream(service.method, url, headers=dict(service.headers), **sent) as answer,
            ):
                body = await self._read(answer)
        except httpx.TimeoutException as exc:
            raise DeadlineError(
                f"tool '{self.name}': the service did not answer within {service.timeout_s:g} s"
            ) from exc
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            kind = type(exc).__name__
            raise ToolError(f"tool '{self.name}': the service cannot be reached ({kind})") from exc
        if answer.status_code >= 300:
            told = scrubbed(body.decode(errors="replace"), self._secrets)
            raise ToolError(f"tool '{self.name}': HTTP status {answer.status_code}: {told}")
        return self._value(answer, body)

    async def _read(self, answer: httpx.Response) -> bytes:
        parts = bytearray()
        async for part in answer.aiter_bytes():
            parts += part
            if len(parts) > _MOST_BYTES:
                raise ToolError(f"tool '{self.name}': the answer has more than {_MOST_BYTES} bytes")
        return bytes(parts)

    def _value(self, answer: httpx.Response, body: bytes) -> Any:
        if not body:
            return {"status": answer.status_code}
        media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type == "application/json" or media_type.endswith("+json"):
            try:
                return strict_json.parse(body)
            except ValueError as exc:
                raise ToolError(f"tool '{self.name}': the answer is not JSON: {exc}") from exc
        return _decoded(body, answer.charset_encoding or "utf-8")


def _decoded(body: bytes, charset: str) -> str:
    """Return text in the character set that a service names, if there is one of that name."""
    try:
        return body.decode(charset, errors="replace")
    except (LookupError, UnicodeError):
        return body.decode(errors="replace")


def _addressed(url: str, arguments: Arguments) -> tuple[str, dict[str, object]]:
    """Fill arguments into the address, and return those that are not in it."""
    used = set(_IN_URL.findall(url))

    def value(match: "re.Match[str]") -> str:
        # No slash may leave its place, and no dots may climb out of it.
        text = quote(_text(arguments.get(match[1], "")), safe="")
        return text.replace(".", "%2E") if set(text) == {"."} else text

    rest = {key: each for key, each in arguments.items() if key not in used}
    return _IN_URL.sub(value, url), rest


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
