"""Sends HTTP requests to one runtime. The only module that imports httpx; maps its errors."""

import json
import platform
import ssl
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import httpx

from caraway.errors import ApiError, BrokenResponseError, InvalidEndpointError, UnreachableError
from caraway.requests import retries
from caraway.requests.addresses import LOOPBACK_HOSTS
from caraway_core.concurrency.clocks import Sleep
from caraway_core.errors import CarawayError

CONNECT_TIMEOUT_S = 5.0
# Errors of a runtime are short. Do not read more of a body that comes from something else.
ERROR_TEXT_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One HTTP request. `timeout_s` limits each wait for bytes; None is for long queries."""

    method: str
    path: str
    accept: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""
    timeout_s: float | None = 30.0
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)
    sends_key: bool = True

    def headers(self, api_key: str = "") -> dict[str, str]:
        content_type = {"Content-Type": self.content_type} if self.content_type else {}
        key = {"X-API-Key": api_key} if api_key and self.sends_key else {}
        return {"Accept": self.accept, **content_type, **key, **self.extra}


class Transport:
    """A pool of connections to one endpoint."""

    def __init__(
        self,
        endpoint: str,
        api_key: str,
        cacert: Path | None = None,
        sleep: Sleep = time.sleep,
        *,
        agent: str = "",
        client_cert: tuple[Path, Path] | None = None,
        max_retries: int = 3,
    ) -> None:
        self.endpoint = _base_url(endpoint)
        self.max_retries = max_retries
        self._api_key = api_key
        self.sleep = sleep
        self._http = httpx.Client(
            base_url=self.endpoint,
            headers=_headers(self.endpoint, agent),
            verify=_trust(self.endpoint, cacert, client_cert),
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def text(self, request: ApiRequest, policy: retries.RetryPolicy) -> str:
        """Return the complete body of the response as text."""
        return self.content(request, policy).decode("utf-8", "replace")

    def content(self, request: ApiRequest, policy: retries.RetryPolicy) -> bytes:
        """Return the complete body of the response."""
        attempt = 0
        while True:
            try:
                with self._response(request) as response:
                    return b"".join(response.iter_bytes())
            except (UnreachableError, ApiError, BrokenResponseError) as error:
                self._wait_or_raise(error, policy, attempt)
            attempt += 1

    def chunks(
        self, request: ApiRequest, policy: retries.RetryPolicy
    ) -> Generator[bytes, None, None]:
        """Yield the body of the response as it arrives.

        Closing the generator closes the connection. Once bytes were yielded there is no retry.
        """
        attempt = 0
        while True:
            try:
                with self._response(request) as response:
                    yield from response.iter_bytes()
                    return
            except (UnreachableError, ApiError) as error:
                self._wait_or_raise(error, policy, attempt)
            attempt += 1

    def _wait_or_raise(
        self, error: CarawayError, policy: retries.RetryPolicy, attempt: int
    ) -> None:
        delay_s = policy.delay_s(error, attempt)
        if delay_s is None:
            raise error
        self.sleep(delay_s)

    @contextmanager
    def _response(self, request: ApiRequest) -> Iterator[httpx.Response]:
        if self._http.is_closed:
            raise CarawayError("the client is closed")
        timeout = httpx.Timeout(request.timeout_s, connect=CONNECT_TIMEOUT_S)
        with self._mapped_errors():
            with self._http.stream(
                request.method,
                request.path,
                params=dict(request.query),
                content=request.body or None,
                headers=request.headers(self._api_key),
                timeout=timeout,
            ) as response:
                if not response.is_success:
                    raise _api_error(response)
                yield response

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as exc:
            raise UnreachableError(self.endpoint, _reason(exc)) from exc
        except httpx.TimeoutException as exc:
            raise BrokenResponseError(f"{self.endpoint} did not respond in time") from exc
        except (httpx.TransportError, httpx.DecodingError) as exc:
            raise BrokenResponseError(
                f"the response of {self.endpoint} is incomplete: {_reason(exc)}"
            ) from exc
        except (httpx.InvalidURL, httpx.HTTPError) as exc:
            raise CarawayError(
                f"cannot send the request to {self.endpoint}: {_reason(exc)}"
            ) from exc


def user_agent(own: str = "") -> str:
    """Return `caraway/<version> (<os>/<release> <arch>)`, after the caller's own."""
    system = f"{platform.system()}/{platform.release()} {platform.machine()}"
    ours = f"caraway/{metadata.version('caraway')} ({system})"
    return f"{own} {ours}" if own else ours


def _headers(endpoint: str, agent: str) -> dict[str, str]:
    # On the same machine compression only costs time, and delays the first rows.
    is_local = httpx.URL(endpoint).host in LOOPBACK_HOSTS
    coding = {"Accept-Encoding": "identity"} if is_local else {}
    return {"User-Agent": user_agent(agent), **coding}


def _base_url(endpoint: str) -> str:
    text = endpoint.strip()
    url = text if "://" in text else f"http://{text}"
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise InvalidEndpointError(f"'{endpoint}' is not a valid endpoint: {exc}") from exc
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidEndpointError(f"'{endpoint}' is not a valid endpoint; use http://HOST:PORT")
    return url.rstrip("/")


def _trust(
    endpoint: str, cacert: Path | None, client_cert: tuple[Path, Path] | None
) -> ssl.SSLContext | bool:
    if not endpoint.startswith("https:"):
        # There is nothing to verify, and loading the CA bundle takes longer than a short query.
        return False
    if cacert is None and client_cert is None:
        return True
    try:
        context = ssl.create_default_context(cafile=str(cacert) if cacert else None)
    except (OSError, ssl.SSLError) as exc:
        raise CarawayError(f"cannot load CA certificates from '{cacert}': {exc}") from exc
    if client_cert is not None:
        try:
            context.load_cert_chain(*client_cert)
        except (OSError, ssl.SSLError) as exc:
            raise CarawayError(
                f"cannot load the client certificate '{client_cert[0]}': {exc}"
            ) from exc
    return context


def _api_error(response: httpx.Response) -> ApiError:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > ERROR_TEXT_LIMIT:
            break
    text = bytes(body[:ERROR_TEXT_LIMIT]).decode("utf-8", "replace").strip()
    error_object = _error_object(text)
    message = str(error_object.get("error") or error_object.get("message") or "")
    code, details = error_object.get("code"), error_object.get("details")
    return ApiError(
        response.status_code,
        message or text,
        retries.retry_after_s(response.headers),
        bool(message),
        code=code if isinstance(code, str) else "",
        details=details if isinstance(details, dict) else {},
    )


def _error_object(text: str) -> dict[str, object]:
    """Return an error object, or nothing if the body is plain text.

    Some routes send plain text, others `{"error": text}` or `{"message": text}`.
    """
    try:
        parsed = json.loads(text)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _reason(exc: Exception) -> str:
    return str(exc) or type(exc).__name__
