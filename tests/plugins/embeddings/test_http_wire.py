"""Errors for a provider's failures, without a word of its answers in a message."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from caraway_plugins.embeddings import http_wire

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)
WORDS = ["Wed,", "21", "Oct", "Jan", "2015", "07:28:00", "GMT", "UTC", "+9999", "-0000", "99", "0",
         "99999999999", "(", ")", "1e5", "-5", "12:00", "\u0661\u0662", "\u00b2", "x"]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join) | st.text(max_size=20))
def test_a_wait_is_never_longer_than_an_hour_whatever_the_header_has(text: str) -> None:
    assert 0 <= http_wire.retry_after_s({"retry-after": text}, NOW) <= 3600


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 0), ("0", 0), ("7", 7), (" 7 ", 7), ("007", 7), ("9" * 400, 3600), ("-7", 0),
        ("7.5", 0), ("inf", 0), ("1 Jan 99999999999 00:00:00 GMT", 0),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 31),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0),
        (format_datetime(NOW + timedelta(days=400), usegmt=True), 3600),
        ("Thu, 29 Feb 2024 14:00:10 +0200", 11),
    ],
)  # fmt: skip
def test_a_wait_is_a_number_or_a_date(text: str, seconds: int) -> None:
    assert http_wire.retry_after_s({"retry-after": text}, NOW) == seconds


def test_without_the_header_there_is_no_wait() -> None:
    assert http_wire.retry_after_s({}) == 0


@pytest.mark.parametrize(
    ("status", "text", "kind", "code"),
    [
        (429, "slow down", ModelAwayError, "rate_limit"),
        (429, "INSUFFICIENT_QUOTA", ModelError, "quota"),
        (429, "x" * 5000 + "billing", ModelAwayError, "rate_limit"),
        (500, "maximum context", ModelAwayError, "unavailable"),
        (503, "", ModelAwayError, "unavailable"),
        (408, "", ModelAwayError, "unavailable"),
        (401, "", ModelError, "auth"),
        (403, "", ModelError, "auth"),
        (404, "", ModelError, "not_found"),
        (413, "", ModelInputError, "context_length"),
        (400, "Too many TOKENS", ModelInputError, "context_length"),
        (422, "wrong", ModelInputError, None),
        (418, "", ModelError, None),
        (302, "", ModelError, None),
    ],
)
def test_a_status_says_what_to_do(
    status: int, text: str, kind: type[ModelError], code: str | None
) -> None:
    found = http_wire.failure("model 'm'", status, text, {"retry-after": "9"})
    assert type(found) is kind
    assert code is None or found.code == code or found.code.endswith(f".{code}")
    if isinstance(found, ModelAwayError):
        assert found.retry_after_s == 9


@given(st.integers(300, 599), st.text(min_size=8, max_size=30).filter(str.strip))
def test_no_text_of_the_provider_reaches_the_message(status: int, text: str) -> None:
    message = http_wire.failure("model 'm'", status, f"sk-{text}", {}).message
    assert message.startswith("model 'm': ")
    assert f"sk-{text}" not in message
