"""Sends requests to an API: with limits, repetitions and redirects."""

import functools
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from caraway_core.errors import DatasetError
from caraway_core.json_texts import json_sizes, strict_json
from caraway_plugins.sources.api import outside, waits
from caraway_plugins.sources.api.calls import ApiCall, ApiPage

_MOST_BYTES = 64 * 2**20
_MOST_VALUES = 4_000_000
_MOST_DEPTH = 64
_MOST_REDIRECTS = 5
_PAGE_TIMEOUTS = 10
"""The longest time for a page, as a multiple of the timeout of a read."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_WITH_BODY = frozenset({307, 308})


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """The limits of one dataset. `is_exact` reads numbers with a point as decimals."""

    timeout_s: float = 30.0
    connect_s: float = 10.0
    retries: int = 3
    wait_s: float = 120.0
    """All waits before the repetitions of one request together."""
    interval_s: float = 0.0
    """The least time between two requests of this process to one host."""
    is_exact: bool = False
    secret_params: str = "http_headers and http_auth_token"
    """The params with the login, for messages."""
    root_certs: str | None = None
    """A file with the certificates of the authorities; None: those that the system trusts."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """A request that may be repeated after some seconds, and its error otherwise."""

    wait_s: float
    error: DatasetError


class ApiClient:
    """Asks an API for its pages, one after the other."""

    def __init__(self, limits: ApiLimits, stopped: threading.Event | None = None) -> None:
        """Waits and answers end when `stopped` is set.

        Raises:
            DatasetError: the certificates cannot be read.
        """
        self._limits = limits
        timeout = httpx.Timeout(limits.timeout_s, connect=min(limits.timeout_s, limits.connect_s))
        trusted = _certificates(limits.root_certs)
        self._http = httpx.Client(timeout=timeout, follow_redirects=False, verify=trusted)
        self._stopped = stopped or threading.Event()

    def close(self) -> None:
        """Close the connections; no request may run."""
        self._http.close()

    def ask(self, call: ApiCall) -> ApiPage:
        """Return the answer to a request, which is repeated while the server is busy.

        Raises:
            DatasetError: the server cannot be reached, refuses the request, stays busy, or answers
                something else than JSON.
        """
        left_s = self._limits.wait_s
        for attempt in range(self._limits.retries + 1):
            if self._stopped.wait(waits.turn_wait_s(call.url, self._limits.interval_s)):
                raise DatasetError("unavailable", f"'{call.title}' is not read any more")
            found = self._tried(call, attempt)
            if isinstance(found, ApiPage):
                return found
            if attempt == self._limits.retries or found.wait_s > left_s:
                raise found.error
            left_s -= found.wait_s
            if self._stopped.wait(found.wait_s):
                raise found.error
        raise AssertionError("the last attempt returns or raises")

    def _tried(self, call: ApiCall, attempt: int) -> ApiPage | _Failure:
        try:
            with self._sent(call) as answer:
                status = answer.status_code
                again_s = waits.wait_s(status, answer.headers, attempt, datetime.now(UTC))
                if again_s is not None:
                    return _Failure(again_s, _busy(call, status, again_s))
                if status >= 300:
                    raise _refusal(call, status, self._limits)
                return self._page(call, answer)
        except httpx.InvalidURL as exc:
            raise DatasetError("invalid", f"'{call.title}' is not an address") from exc
        except httpx.HTTPError as exc:
            # The message of the error may contain the whole address, including secrets.
            said = (
                "does not answer in time"
                if isinstance(exc, httpx.TimeoutException)
                else ("cannot be reached")
            )
            error = DatasetError(
                "unavailable", f"'{call.title}' {said}; check the address and the network"
            )
            return _Failure(waits.backoff_s(attempt), error)

    @contextmanager
    def _sent(self, call: ApiCall) -> Iterator[httpx.Response]:
        """Send a request, and follow redirects; only its own host gets its headers."""
        for _ in range(_MOST_REDIRECTS + 1):
            is_home = call.is_home
            if not is_home:
                outside.check(call.home, call.url, call.title)
            body = call.body if is_home else None
            sent = self._http.build_request(
                call.verb,
                call.url,
                headers={"accept": "application/json", **(call.headers if is_home else {})},
                content=body,
            )
            answer = self._http.send(sent, stream=True)
            try:
                if answer.status_code not in _REDIRECTS or "location" not in answer.headers:
                    yield answer
                    return
                if call.body is not None and answer.status_code not in _WITH_BODY:
                    raise DatasetError(
                        "invalid", f"'{call.title}' redirects to another address; use that"
                    )
                call = call.at(answer.headers["location"], call.url)
                if call.body is not None and not call.is_home:
                    raise DatasetError(
                        "invalid", f"'{call.title}' redirects to another host; use its address"
                    )
            finally:
                answer.close()
        raise DatasetError("invalid", f"'{call.title}' redirects too often; check the address")

    def _page(self, call: ApiCall, answer: httpx.Response) -> ApiPage:
        parse = strict_json.parse_exactly if self._limits.is_exact else strict_json.parse
        try:
            text = self._read(call, answer)
            if not text:
                return ApiPage(None, str(answer.url), None)
            json_sizes.check(text, _MOST_VALUES, _MOST_DEPTH)
            value = parse(text)
        except ValueError as exc:
            raise DatasetError(
                "invalid",
                f"'{call.title}' does not answer with JSON that can be read: {exc}; set "
                "file_format if it is a file",
            ) from exc
        link = answer.links.get("next", {}).get("url")
        return ApiPage(value, str(answer.url), link)

    def _read(self, call: ApiCall, answer: httpx.Response) -> bytes:
        ends_s = time.monotonic() + _PAGE_TIMEOUTS * self._limits.timeout_s
        found = bytearray()
        for part in answer.iter_bytes():
            found += part
            if len(found) > _MOST_BYTES:
                raise DatasetError(
                    "unsupported",
                    f"a page of '{call.title}' has more than {_MOST_BYTES >> 20} MiB; ask for "
                    "smaller pages with pagination_page_size",
                )
            if time.monotonic() > ends_s or self._stopped.is_set():
                raise httpx.ReadTimeout("the page takes too long", request=answer.request)
        return bytes(found)


@functools.lru_cache(maxsize=64)
def _certificates(path: str | None) -> ssl.SSLContext:
    # To read them takes longer than many an answer.
    if path is None:
        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as exc:  # ssl.SSLError is one.
        raise DatasetError(
            "invalid", f"the file of certificates '{path}' cannot be read; it has to be PEM"
        ) from exc


def _busy(call: ApiCall, status: int, wait_s: float) -> DatasetError:
    asked = f" and asks to wait for {wait_s:.0f} s" if wait_s >= 1 else ""
    return DatasetError(
        "unavailable",
        f"'{call.title}' is busy or limits requests ({status}){asked}; ask it less often, or raise "
        "max_retries and retry_max_duration",
    )


def _refusal(call: ApiCall, status: int, limits: ApiLimits) -> DatasetError:
    title = call.title
    if status in (401, 403):
        message = f"'{title}': access is denied ({status}); check {limits.secret_params}"
        return DatasetError("auth", message)
    if status in (404, 410):
        message = f"'{title}' does not exist ({status}); check the address"
        return DatasetError("not_found", message)
    if status < 500:
        return DatasetError(
            "invalid", f"'{title}' refuses the request ({status}); check its params"
        )
    return DatasetError("unavailable", f"'{title}' returned {status}; check the server")
