"""Turns failures of a provider or its connection into errors of models.

Words of a provider are passed on only where they say what is wrong with the request; they are
scrubbed of the params' secrets. Everything else is worded here.
"""

import json
import math
import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from caraway_ai.providers.params import scrubbed
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError

_TOO_LONG = re.compile(
    r"maximum context length|context[ _](length|size|window)|prompt is too long|too many tokens|"
    r"input is too long|exceeds? the (available|maximum|model'?s?) (context|input)",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(
    r"(incorrect|invalid) api[ _-]?key|api[ _-]?key (is )?(not valid|invalid|expired|not found)",
    re.IGNORECASE,
)
_CANNOT = re.compile(r"\b(image|audio|video|file) input is not supported", re.IGNORECASE)
"""Messages of llama.cpp servers with the status 500."""
_TOKENS = re.compile(
    r"\b(\d[\d,_]{1,11})\b(?=[^.;]{0,40}?\btokens?\b)|\btokens?[^\d.;]{0,30}(\d[\d,]*)"
)
_DISCONNECTED = ("RemoteDisconnected", "ServerDisconnectedError")
"""Of `http.client` and of `aiohttp`, neither of which every provider needs."""
_CUT_OFF = ("ClientPayloadError", "ContentLengthError", "TransferEncodingError")
"""Of `aiohttp`, as above."""
_LONGEST_WAIT_S = 3600
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "quota_exceeded"})


@dataclass(frozen=True, slots=True)
class ProviderWords:
    """The message and code of a provider for a failure."""

    message: str = ""
    code: str = ""
    param: str = ""


@dataclass(frozen=True, slots=True)
class FailureReader:
    """Reads the failures of one model's provider."""

    model: str
    key_param: str
    """The param that holds the key, for messages."""
    secrets: tuple[str, ...]

    def of_status(self, status: int, headers: Mapping[str, str], body: object) -> ModelError:
        """Return the error for an answer that is not 2xx."""
        words = read_words(body)
        if status in (401, 403) or (status == 400 and _BAD_KEY.search(words.message)):
            return self._error(
                f"its provider refused the key (status {status}); check the param "
                f"'{self.key_param}' and what the key may do",
                "auth",
            )
        if status == 402 or words.code in _QUOTA_CODES:
            return self._error(
                "its provider refused the call: the quota or the credit of the account is used "
                "up; check the plan and the billing of the provider",
                "quota",
            )
        if status == 404:
            return self._error(
                "its provider knows no such model or address; check the model in 'from' and the "
                "param 'endpoint'",
                "not_found",
            )
        if status == 429:
            wait_s = retry_after_s(headers) or 5
            return self._away(
                f"its provider limits the rate; try again in {wait_s} s", "rate_limit", wait_s
            )
        if status in (408, 504):
            return self._away("its provider did not finish in time; try again", "timeout")
        if status in (502, 503, 529):
            wait_s = retry_after_s(headers) or 2
            return self._away(
                f"its provider is overloaded or away (status {status}); try again",
                "unavailable",
                wait_s,
            )
        if status in (400, 413, 422) or _CANNOT.search(words.message):
            return self._input(words)
        return self._error(f"its provider failed (status {status}); try again", "failed")

    def in_stream(self, body: object) -> ModelError:
        """Return the error for one that a provider sends in the middle of a stream."""
        words = read_words(body)
        status = body.get("code") if isinstance(body, dict) else None
        inner = body.get("error") if isinstance(body, dict) else None
        if isinstance(inner, dict):
            status = inner.get("code", status)
        if isinstance(status, int) and 400 <= status < 600:
            return self.of_status(status, {}, body)
        kind = inner.get("type") if isinstance(inner, dict) else ""
        known = {"overloaded_error": 529, "rate_limit_error": 429, "rate_limit_exceeded": 429,
                 "invalid_request_error": 400, "authentication_error": 401,
                 "insufficient_quota": 402}  # fmt: skip
        if found := known.get(str(words.code)) or known.get(str(kind)):
            return self.of_status(found, {}, body)
        return self._error("its provider failed in the middle of the answer; try again", "failed")

    def of_transport(self, exc: BaseException, *, is_timeout: bool) -> ModelError:
        """Return the error for a connection that failed."""
        for cause in causes(exc):
            if isinstance(cause, ssl.SSLCertVerificationError):
                return self._away(
                    "the certificate of its provider cannot be verified "
                    f"({cause.verify_message}); check the param 'endpoint', or give the authority "
                    "as 'tls_root_certificate'",
                    "unavailable",
                )
            if isinstance(cause, ssl.SSLError):
                # Only an error that OpenSSL made has one.
                reason = getattr(cause, "reason", None) or "no reason given"
                return self._away(
                    f"TLS with its provider failed ({reason}); check the param 'endpoint'",
                    "unavailable",
                )
        if is_timeout:
            return self._away("its provider did not respond in time; try again", "timeout")
        return self._away(
            f"{_away_words(exc)}; check the param 'endpoint' and the network, or try again",
            "unavailable",
        )

    def cut(self) -> ModelError:
        """Return the error for a connection that ended in the middle of an answer."""
        return self._error(
            "the connection to its provider was lost before the answer was complete; send the "
            "request again",
            "failed",
        )

    def damaged(self, what: str) -> ModelError:
        """Return the error for an answer that cannot be read."""
        return self._error(
            f"the answer of its provider is damaged: {what}; send the request again", "failed"
        )

    def _input(self, words: ProviderWords) -> ModelError:
        said = scrubbed(words.message, self.secrets) or "it does not say why"
        if words.code == "context_length_exceeded" or _TOO_LONG.search(words.message):
            return ModelInputError(
                f"model '{self.model}': the request is too long for its context"
                f"{_counts(words.message)}; send fewer or shorter messages",
                "context_length",
            )
        return ModelInputError(f"model '{self.model}': its provider refused the request: {said}")

    def _error(self, message: str, type_: Any) -> ModelError:
        return ModelError(f"model '{self.model}': {message}", type_)

    def _away(self, message: str, type_: Any, wait_s: int = 2) -> ModelAwayError:
        return ModelAwayError(f"model '{self.model}': {message}", type_, wait_s)


def read_words(body: object) -> ProviderWords:
    """Read the error of an answer, in any of the shapes that providers use."""
    if isinstance(body, bytes | str):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return ProviderWords(message=body if isinstance(body, str) else "")
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return ProviderWords()
    inner = body.get("error", body)
    if isinstance(inner, str):
        return ProviderWords(message=inner, code=str(body.get("code") or ""))
    if not isinstance(inner, dict):
        return ProviderWords()
    message = inner.get("message") or body.get("message") or ""
    return ProviderWords(
        message=message if isinstance(message, str) else "",
        code=str(inner.get("code") or ""),
        param=str(inner.get("param") or ""),
    )


def retry_after_s(headers: Mapping[str, str]) -> int | None:
    """Return how long a provider asks to wait, in whole seconds."""
    text = headers.get("retry-after", "")
    try:
        seconds = float(text)
    except ValueError:
        seconds = _until(text)
    if not math.isfinite(seconds) or seconds <= 0:
        return None
    return min(math.ceil(seconds), _LONGEST_WAIT_S)


def causes(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what led to it, outermost first."""
    for _ in range(20):
        if exc is None:
            return
        yield exc
        exc = exc.__cause__ or exc.__context__


def _until(text: str) -> float:
    import time

    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, IndexError, OverflowError):
        return math.nan


def _away_words(exc: BaseException) -> str:
    """Say what the system says. What event loops say of it has addresses in it."""
    exceptions = list(causes(exc))
    if any(type(cause).__name__ in _DISCONNECTED for cause in exceptions):
        return "its provider closed the connection without an answer"
    if any(type(cause).__name__ in _CUT_OFF for cause in exceptions):
        return "the connection to its provider was lost before the answer was complete"
    return f"its provider cannot be reached ({_reason(exceptions)})"


def _reason(exceptions: list[BaseException]) -> str:
    for cause in exceptions:
        if isinstance(cause, socket.gaierror):
            return "the name of its host is not known"
    for cause in exceptions:
        if isinstance(cause, OSError) and cause.errno and cause.errno > 0:
            return os.strerror(cause.errno)
    return type(exceptions[-1]).__name__


def _counts(message: str) -> str:
    found = [first or second for first, second in _TOKENS.findall(message)]
    if not found:
        return ""
    return f" (in tokens: {', '.join(found[:3])})"
