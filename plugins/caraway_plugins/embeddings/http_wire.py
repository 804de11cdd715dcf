"""Requests in JSON to providers, and what their failures mean.

No text of a provider reaches a message: some repeat the key or the input.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from caraway_core.errors import ModelAwayError, ModelError, ModelInputError

_TOO_LONG = ("context_length", "maximum context", "too many tokens", "token limit", "max_tokens",
             "input is too long", "too long", "maximum input length")  # fmt: skip
_NO_MONEY = ("insufficient_quota", "billing")
_LONGEST_S = 3600


class JsonClient:
    """Posts to one provider. `title` begins each error."""

    def __init__(self, title: str, headers: Mapping[str, str], timeout_s: float) -> None:
        self._title = title
        self._client = httpx.Client(
            headers=dict(headers),
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, 10.0)),
            follow_redirects=False,
        )

    def post(self, url: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Send a body and return the answer.

        Raises:
            ModelAwayError: the provider limits the rate, is overloaded or does not respond.
            ModelInputError: it refused the input.
            ModelError: it refused the key, has no such model, or answered with something else.
        """
        try:
            answer = self._client.post(url, json=body)
        except httpx.TimeoutException as exc:
            raise ModelAwayError(
                f"{self._title}: the provider did not answer in time", "timeout", 0
            ) from exc
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as exc:
            raise ModelAwayError(
                f"{self._title}: the provider cannot be reached: {type(exc).__name__}",
                retry_after_s=0,
            ) from exc
        if answer.status_code != httpx.codes.OK:
            raise failure(self._title, answer.status_code, answer.text, answer.headers)
        try:
            content = answer.json()
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise ModelError(f"{self._title}: the provider's answer is not a JSON object")
        return content

    def close(self) -> None:
        self._client.close()


def failure(title: str, status: int, text: str, headers: Mapping[str, str]) -> ModelError:
    """Return the error for a status of a provider; its text is only searched for known words."""
    words = text[:4096].lower()
    if status == 429 and any(word in words for word in _NO_MONEY):
        return ModelError(f"{title}: the provider's quota is used up", "quota")
    if status == 429:
        return ModelAwayError(
            f"{title}: the provider limits the rate", "rate_limit", retry_after_s(headers)
        )
    if status in (408, 409, 425) or status >= 500:
        return ModelAwayError(
            f"{title}: the provider failed ({status})", "unavailable", retry_after_s(headers)
        )
    if status in (401, 403):
        return ModelError(
            f"{title}: the provider denied access ({status}); check the key in its params", "auth"
        )
    if status in (404, 410):
        return ModelError(
            f"{title}: the provider has no such model or address ({status}); check 'from' and "
            "the param 'endpoint'",
            "not_found",
        )
    if status in (400, 413, 422) and (status == 413 or any(word in words for word in _TOO_LONG)):
        return ModelInputError(f"{title}: a text is too long for the provider", "context_length")
    if status in (400, 422):
        return ModelInputError(f"{title}: the provider refused the input ({status})")
    return ModelError(f"{title}: the provider answered with the status {status}")


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> int:
    """Return the seconds that a Retry-After header asks for, as a number or a date; 0: none."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return min(int(text[:9]), _LONGEST_S)
    try:
        until = parsedate_to_datetime(text)
        left_s = (until - (now or datetime.now(UTC))).total_seconds() if until.tzinfo else 0.0
    except (ValueError, OverflowError):
        return 0
    return min(max(int(left_s) + 1, 0), _LONGEST_S)
