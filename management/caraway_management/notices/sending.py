"""Sends one notice to one target."""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import Enum, auto

import httpx

from caraway_core.errors import CarawayError
from caraway_management.notices import signing
from caraway_management.notices.dialing import Dialer
from caraway_management.notices.messages import Notice
from caraway_management.notices.settings import NoticeSettings

_GONE = 410
_USER_AGENT = "Caraway-Notices/1"


class NoticeError(CarawayError):
    """A target did not take a notice; it may later."""


class Outcome(Enum):
    """The final answer of a target."""

    TAKEN = auto()
    GONE = auto()
    """It wants no more notices."""


async def send_webhook(
    dialer: Dialer,
    method: str,
    url: str,
    secret: str | None,
    token: str | None,
    notice: Notice,
    now: datetime,
) -> Outcome:
    """Send a notice to a webhook.

    Raises:
        NoticeError: it answered anything but 2xx or 410.
        UnreachableError: it did not answer.
    """
    body = json.dumps(notice.as_json(), separators=(",", ":")).encode()
    headers = _headers(token)
    if secret is not None:
        headers |= signing.headers(secret, notice.id, now, body)
    response = await dialer.send(method, url, body, headers)
    if response.status_code == _GONE:
        return Outcome.GONE
    if not response.is_success:
        raise NoticeError(f"the webhook answered {response.status_code}")
    return Outcome.TAKEN


async def send_to_slack(
    dialer: Dialer, settings: NoticeSettings, channel: str, notice: Notice
) -> None:
    """Post a notice to a channel of Slack.

    Raises:
        NoticeError: Slack refused it.
        UnreachableError: it did not answer.
    """
    body = {
        "channel": channel,
        "text": f"{_escaped(notice.title)}\n{_escaped(notice.text)}",
        "unfurl_links": False,
    }
    response = await dialer.send(
        "POST", settings.slack_url, json.dumps(body).encode(), _headers(settings.slack_token)
    )
    if problem := _slack_problem(response):
        raise NoticeError(f"Slack refused the message: {problem}")


def _slack_problem(response: httpx.Response) -> str:
    try:
        answer = response.json()
    except ValueError:
        return f"status {response.status_code}"
    if isinstance(answer, Mapping) and answer.get("ok") is True:
        return ""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    return str(error or f"status {response.status_code}")[:100]


def _headers(token: str | None) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "user-agent": _USER_AGENT,
        # The answer is bounded, and not decompressed.
        "accept-encoding": "identity",
    }
    return headers | ({"authorization": f"Bearer {token}"} if token else {})


def _escaped(text: str) -> str:
    """Return text in which Slack reads no links, mentions or markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
