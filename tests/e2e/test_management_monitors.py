"""A monitor of a real runtime that fires and recovers, with a real mail server and a real receiver.

Samples, judgements and the calm before a recovery take minutes, and no processor.
"""

import asyncio
import base64
import hashlib
import hmac
import json
from pathlib import Path

import pytest

from tests.kit import deadlines, mail
from tests.kit.managed_projects import PLAIN, Project, status_of
from tests.kit.management_process import START_S, Laptop, laptop
from tests.kit.webhooks import Receiver, receiving

pytestmark = pytest.mark.full
_FIRING_S, _RECOVERY_S = 240.0, 360.0
"""Monitors are judged each minute, over windows of a minute."""
_EVERY_S = 0.2
"""More looks would be more requests than a credential may send in a minute."""


async def test_a_monitor_sends_mail_and_a_signed_webhook_and_says_when_it_is_over(
    tmp_path: Path,
) -> None:
    async with mail.serving() as box, receiving() as receiver:
        environ = {
            "CARAWAY_MANAGEMENT_SMTP_URL": f"smtp+plain://127.0.0.1:{box.port}",
            "CARAWAY_MANAGEMENT_SMTP_FROM": "caraway@example.com",
            "CARAWAY_MANAGEMENT_NOTICES_INSIDE": "true",
        }
        with laptop(tmp_path, environ=environ) as home:
            await asyncio.to_thread(_monitor, home, box, receiver)
    fired, resolved = (json.loads(each.body) for each in receiver.requests)
    assert (fired["type"], resolved["type"]) == ("monitor.fired", "monitor.resolved")
    assert "shop" in fired["data"]["subject"]
    assert [each["Subject"].split(":")[0] for each in box.messages] == ["Alert (warn)", "Resolved"]
    assert box.recipients == ["ops@example.com"] * 2


def _monitor(home: Laptop, box: mail.MailBox, receiver: Receiver) -> None:
    home.initialize("acme")
    with home.serving() as served, home.client(served) as api:
        project = Project(api, api.create_project(name="shop", manifest=PLAIN)["id"])
        assert project.deploy()["status"] == "succeeded"
        made = api.create_monitor(
            project.id, name="failures", template="query_failures",
            spec={"threshold": 0, "window": "1m"},
            targets={"email": {"emails": ["ops@example.com"]}, "http": {"url": receiver.url}},
        )  # fmt: skip
        secret = made["targets"]["http"]["signing_secret"]

        def state() -> str:
            found: str = api.get_monitor(project.id, made["id"])["state"]
            return found

        def fails() -> bool:
            assert status_of(project.endpoint(), project.key(1), sql="SELECT * FROM none") == 400
            return state() == "firing"

        deadlines.until(fails, "the alarm", _FIRING_S, every_s=_EVERY_S)
        deadlines.until(lambda: len(receiver.requests) == 1, "a webhook", START_S)
        deadlines.until(lambda: len(box.messages) == 1, "a message", START_S)
        deadlines.until(lambda: state() == "ok", "the recovery", _RECOVERY_S, every_s=_EVERY_S)
        deadlines.until(lambda: len(receiver.requests) == 2, "another webhook", START_S)
        deadlines.until(lambda: len(box.messages) == 2, "another message", START_S)
    for request in receiver.requests:
        assert_signed(secret, request.headers, request.body)


def assert_signed(secret: str, headers: dict[str, str], body: bytes) -> None:
    """Verify a webhook as Standard Webhooks say."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert f"v1,{expected}" in headers["webhook-signature"].split()
