import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from sqlalchemy.engine import URL

from caraway_management.domain.addresses import Outside
from caraway_management.domain.scopes import Role
from caraway_management.monitoring import announcing
from caraway_management.monitoring.delivering import WAITS_S, Deliverer
from caraway_management.monitoring.judging import Judge
from caraway_management.notices.dialing import Dialer
from caraway_management.notices.settings import MailServer, NoticeSettings
from caraway_management.outbox import Worker
from caraway_management.store.tables import (
    Member,
    MetricSample,
    Monitor,
    Org,
    OutboxEntry,
    User,
)  # fmt: skip
from tests.kit import mail as mail_kit
from tests.kit import management
from tests.kit.management import Installation

HTTP = {"url": "https://hooks.example.com/a", "method": "POST", "token": "t0ken"}


class Hooks:
    """A webhook receiver, and the addresses of its name."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.status = 204
        self.addresses: Sequence[str] = ["93.184.216.34"]
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        """Done while a notice is on its way."""

    @property
    def dialer(self) -> Dialer:
        async def resolve(host: str, port: int) -> Sequence[str]:
            if self.meanwhile is not None:
                await self.meanwhile()
            return self.addresses

        return Dialer(Outside(), resolve, lambda: httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(self.status, stream=httpx.ByteStream(b""))


class Alarm:
    """A monitor that has fired, whose notices are to be sent."""

    def __init__(self, installation: Installation, targets: dict[str, Any]) -> None:
        self.installation, self.hooks = installation, Hooks()
        self.user: User = installation.add_user()
        self.org: Org = installation.add_org("acme", self.user)
        self.owner = installation.sign_in(self.user)
        self.project_id = self.owner.post("/v1/projects", {"name": "shop"}).json()["id"]
        body = {
            "name": "Failures",
            "template": "query_failures",
            "spec": {"threshold": 0, "window": "1m"},
            "targets": targets,
        }
        made = self.owner.post(f"/v1/projects/{self.project_id}/monitors", body)
        assert made.status_code == 201, made.text
        self.monitor = made.json()
        self.path = f"/v1/projects/{self.project_id}/monitors/{self.monitor['id']}"
        self.judge = Judge(installation.services, "one")
        self.worker = self.new_worker()
        for failures in (0, 0, 1):
            self.minute(failures)

    def new_worker(self) -> Worker:
        deliverer = Deliverer(self.installation.services, self.hooks.dialer)
        services = self.installation.services
        handlers = {announcing.KIND: deliverer.deliver}
        return Worker(services.database, services.now, handlers)

    def minute(self, failures: int) -> None:
        self.installation.clock.advance(seconds=60)

        async def add(session: Any) -> None:
            values = {"instances": 1, "instances_ready": 1, "queries": 0}
            values["query_failures"] = failures
            now = self.installation.clock()
            session.add(MetricSample(project_id=self.project_id, at=now, values=values))

        self.installation.change(add)
        self.installation.run(self.judge.run_once)

    def work(self) -> int:
        return self.installation.run(self.worker.run_once)

    def waiting(self) -> list[OutboxEntry]:
        query = select(OutboxEntry).where(OutboxEntry.kind == announcing.KIND)
        return self.installation.rows(query)


@pytest.fixture
def installation(prepared_url: URL) -> Iterator[Installation]:
    with management.installation(prepared_url, is_prepared=True) as made:
        yield made


def test_a_webhook_gets_the_notice_signed_and_with_its_token(installation: Installation) -> None:
    alarm = Alarm(installation, {"http": HTTP})
    assert alarm.work() == 1
    [request] = alarm.hooks.requests
    assert request.headers["authorization"] == "Bearer t0ken"
    secret = alarm.monitor["targets"]["http"]["signing_secret"]
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}."
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, signed.encode() + request.content, hashlib.sha256).digest()
    expected = f"v1,{base64.b64encode(digest).decode()}"
    assert request.headers["webhook-signature"] == expected
    assert alarm.waiting() == []


def test_a_notice_is_tried_7_times_over_41_hours(installation: Installation) -> None:
    alarm = Alarm(installation, {"http": HTTP})
    alarm.hooks.status = 503
    began = installation.clock()
    assert alarm.work() == 1
    for wait_s in WAITS_S:
        # Another instance goes on where this one ended.
        alarm.worker = alarm.new_worker()
        installation.clock.advance(seconds=wait_s - 1)
        assert alarm.work() == 0
        installation.clock.advance(seconds=1)
        assert alarm.work() == 1
    assert alarm.waiting() == []
    assert len(alarm.hooks.requests) == 7
    assert len({request.headers["webhook-id"] for request in alarm.hooks.requests}) == 1
    hours = (installation.clock() - began).total_seconds() / 3_600
    assert 40 < hours < 42


def test_a_recovery_waits_for_the_alarm_of_its_target(installation: Installation) -> None:
    alarm = Alarm(installation, {"http": HTTP})
    alarm.hooks.status = 500
    alarm.work()
    for _ in range(4):
        alarm.minute(1)
    assert len(alarm.waiting()) == 2
    alarm.hooks.status = 200
    installation.clock.advance(seconds=WAITS_S[0])
    while alarm.work():
        pass
    kinds = [request.read().split(b'"type":"')[1][:16] for request in alarm.hooks.requests]
    assert kinds == [b'monitor.fired","', b'monitor.fired","', b"monitor.resolved"]


def test_a_receiver_that_is_gone_is_switched_off(installation: Installation) -> None:
    alarm = Alarm(installation, {"http": HTTP})
    alarm.hooks.status = 410
    assert alarm.work() == 1
    assert alarm.waiting() == []
    shown = alarm.owner.get(alarm.path).json()
    assert shown["targets"]["http"]["disabled_reason"] == "the receiver answered 410 Gone"
    assert shown["revision"] == 2
    for failures in (1, 1, 1, 1, 2):
        alarm.minute(failures)
    assert alarm.waiting() == []
    again = {"targets": {"http": {"url": HTTP["url"]}}}
    shown = alarm.owner.patch(alarm.path, again).json()
    assert shown["targets"]["http"]["disabled_reason"] is None
    assert shown["targets"]["http"]["has_token"] is True


def test_a_target_that_is_changed_meanwhile_is_not_switched_off(installation: Installation) -> None:
    alarm = Alarm(installation, {"http": HTTP})
    alarm.hooks.status = 410
    changed = {"url": "https://hooks.example.com/b", "method": "POST"}

    async def change() -> None:
        async with installation.services.database.change() as session:
            monitor = await session.get_one(Monitor, alarm.monitor["id"])
            monitor.targets = {"http": changed}

    alarm.hooks.meanwhile = change
    assert alarm.work() == 1
    shown = alarm.owner.get(alarm.path).json()["targets"]["http"]
    assert (shown["url"], shown["disabled_reason"]) == (changed["url"], None)


def test_a_name_that_leads_inside_now_gets_nothing(installation: Installation) -> None:
    alarm = Alarm(installation, {"http": HTTP})
    alarm.hooks.addresses = ["169.254.169.254"]
    assert alarm.work() == 1
    assert alarm.hooks.requests == []
    assert len(alarm.waiting()) == 1


def test_notices_of_deleted_and_disabled_monitors_are_dropped(installation: Installation) -> None:
    alarm = Alarm(installation, {"http": HTTP})
    alarm.owner.patch(alarm.path, {"enabled": False})
    assert alarm.work() == 1
    assert (alarm.hooks.requests, alarm.waiting()) == ([], [])


def test_tokens_of_another_monitor_cannot_be_used(installation: Installation) -> None:
    alarm = Alarm(installation, {"http": HTTP})

    async def swap(session: Any) -> None:
        monitor = (
            await session.scalars(select(Monitor).where(Monitor.template != "storage"))
        ).one()
        targets = monitor.targets["http"]
        swapped = targets | {"sealed_token": targets["sealed_signing_secret"]}
        monitor.targets = {"http": swapped}

    installation.change(swap)
    alarm.work()
    assert alarm.hooks.requests == []


def test_mail_goes_to_addresses_and_to_present_members(prepared_url: URL) -> None:
    with management.installation(prepared_url, is_prepared=True) as bare:
        stack = mail_kit.serving()
        box = bare.run(stack.__aenter__)
        try:
            server = MailServer("127.0.0.1", box.port, "caraway@example.com", is_plain=True)
            _use(bare, NoticeSettings(server))
            _check_mail(bare, box)
        finally:
            bare.run(stack.__aexit__, None, None, None)


def _use(installation: Installation, notices: NoticeSettings) -> None:
    from dataclasses import replace

    services = replace(installation.services, notices=notices)
    installation.services = services
    installation.client.app.state.services = services  # type: ignore[attr-defined]


def _check_mail(installation: Installation, box: mail_kit.MailBox) -> None:
    member, former = installation.add_user(), installation.add_user()

    async def name(session: Any) -> None:
        for user in (member, former):
            (await session.get_one(User, user.id)).email = f"{user.username}@example.com"

    installation.change(name)
    email = {"emails": ["ops@example.com"], "recipientUserIds": [member.id, former.id, 999]}
    alarm = Alarm(installation, {"email": email})
    # Members of other organizations are not members of this one.
    installation.add_org("umbrella", former)

    async def join(session: Any) -> None:
        now = installation.clock()
        session.add(
            Member(org_id=alarm.org.id, user_id=member.id, role=Role.VIEWER, created_at=now)
        )

    installation.change(join)
    assert alarm.work() == 1
    assert box.recipients == ["ops@example.com", f"{member.username}@example.com"]
    assert box.messages[0]["Subject"] == "Alert (warn): Failures on project 'shop'"
    assert alarm.waiting() == []
