import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from caraway_management.domain.addresses import Outside
from caraway_management.notices import sending, signing
from caraway_management.notices.dialing import Dialer
from caraway_management.notices.messages import Notice
from caraway_management.notices.sending import NoticeError, Outcome
from caraway_management.notices.settings import NoticeSettings

AT = datetime(2026, 11, 26, 12, tzinfo=UTC)
NOTICE = Notice(
    "msg_1", "monitor.fired", AT, "<!channel> & co", "project 'shop'", "Too many.",
    {"severity": "warn"},
)  # fmt: skip
SECRET = signing.new_secret()
URL = "https://hooks.example.com/a"


class Receiver:
    """Answers every request, and keeps it."""

    def __init__(self, status: int = 200, body: Any = None) -> None:
        self.requests: list[httpx.Request] = []
        self.status, self.body = status, body

    @property
    def dialer(self) -> Dialer:
        async def resolve(host: str, port: int) -> Sequence[str]:
            return ["93.184.216.34"]

        return Dialer(Outside(), resolve, lambda: httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        content = json.dumps(self.body).encode()
        return httpx.Response(self.status, stream=httpx.ByteStream(content))


async def _send(receiver: Receiver, token: str | None = None, now: datetime = AT) -> Outcome:
    return await sending.send_webhook(receiver.dialer, "PUT", URL, SECRET, token, NOTICE, now)


async def test_a_webhook_is_signed_and_repeated_with_the_same_id() -> None:
    receiver = Receiver(204)
    assert await _send(receiver, "t0ken") is Outcome.TAKEN
    later = AT + timedelta(hours=1)
    await _send(receiver, now=later)
    first, second = receiver.requests
    assert first.method == "PUT"
    assert first.headers["authorization"] == "Bearer t0ken"
    assert "authorization" not in second.headers
    assert json.loads(first.content) == {
        "id": "msg_1",
        "type": "monitor.fired",
        "timestamp": "2026-11-26T12:00:00+00:00",
        "data": {
            "name": "<!channel> & co",
            "subject": "project 'shop'",
            "summary": "Too many.",
            "severity": "warn",
        },
    }
    for request, at in ((first, AT), (second, later)):
        expected = signing.headers(SECRET, "msg_1", at, request.content)
        assert expected.items() <= dict(request.headers).items()


async def test_answers_of_webhooks() -> None:
    assert await _send(Receiver(410)) is Outcome.GONE
    for status in (302, 400, 404, 429, 500, 503):
        with pytest.raises(NoticeError, match=f"answered {status}"):
            await _send(Receiver(status))


async def test_slack_reads_no_markup_in_names() -> None:
    receiver = Receiver(200, {"ok": True})
    settings = NoticeSettings(slack_token="xoxb-1")
    await sending.send_to_slack(receiver.dialer, settings, "C1", NOTICE)
    [request] = receiver.requests
    assert request.headers["authorization"] == "Bearer xoxb-1"
    assert request.headers["host"] == "slack.com"
    body = json.loads(request.content)
    assert body["channel"] == "C1"
    assert "&lt;!channel&gt; &amp; co" in body["text"]
    assert "<" not in body["text"]


async def test_what_slack_refuses_is_reported() -> None:
    settings = NoticeSettings(slack_token="xoxb-1")
    table: list[tuple[Receiver, str]] = [
        (Receiver(200, {"ok": False, "error": "channel_not_found"}), "channel_not_found"),
        (Receiver(200, ["ok"]), "status 200"),
        (Receiver(503), "status 503"),
    ]
    for receiver, reason in table:
        with pytest.raises(NoticeError, match=reason):
            await sending.send_to_slack(receiver.dialer, settings, "C1", NOTICE)


def test_a_notice_is_the_same_after_the_outbox() -> None:
    assert Notice.from_json(json.loads(json.dumps(NOTICE.as_json()))) == NOTICE
