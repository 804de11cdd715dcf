"""Projects with a monitor, and a management service with a mail server."""

import contextlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.engine import URL

from caraway_management.monitoring.judging import Judge
from caraway_management.notices.settings import MailServer, NoticeSettings
from caraway_management.store.tables import (
    MetricSample,
    Monitor,
    OutboxEntry,
    User,
)  # fmt: skip
from tests.kit import management
from tests.kit.management import Caller, Installation

TARGETS = {
    "email": {"emails": ["ops@example.com"]},
    "http": {"url": "https://hooks.example.com/a", "token": "t0ken"},
}
BODY = {
    "name": "Failures",
    "template": "query_failures",
    "spec": {"threshold": 0, "window": "1m"},
    "targets": TARGETS,
}
UP = {"instances": 1, "instances_ready": 1, "queries": 0}
FIRED = [("monitor.fired", "email"), ("monitor.fired", "http")]
RESOLVED = [("monitor.resolved", "email"), ("monitor.resolved", "http")]


@contextlib.contextmanager
def mailing(url: URL) -> Iterator[Installation]:
    """Serve over a prepared database, with a mail server for notices."""
    notices = NoticeSettings(MailServer("mail.test", 25, "caraway@example.com"))
    with management.installation(url, is_prepared=True, notices=notices) as made:
        yield made


class Shop:
    """A project with a monitor, and the samples of its metrics."""

    def __init__(self, installation: Installation, **changes: Any) -> None:
        self.installation = installation
        user: User = installation.add_user()
        installation.add_org("acme", user)
        self.owner: Caller = installation.sign_in(user)
        self.id: int = self.owner.post("/v1/projects", {"name": "shop"}).json()["id"]
        made = self.owner.post(f"/v1/projects/{self.id}/monitors", BODY | changes)
        assert made.status_code == 201, made.text
        self.path = f"/v1/projects/{self.id}/monitors/{made.json()['id']}"
        self.judge = Judge(installation.services, "one")
        installation.change(self._remove_storage_alert)

    async def _remove_storage_alert(self, session: Any) -> None:
        await session.execute(delete(Monitor).where(Monitor.name_key.like("storage at%")))

    def minute(self, judge: Judge | None = None, **values: Any) -> dict[str, Any]:
        """Let a minute pass, in which the metrics become so; judge, and return the monitor."""
        self.installation.clock.advance(seconds=60)
        if values:
            self.sample(**values)
        self.installation.run((judge or self.judge).run_once)
        shown: dict[str, Any] = self.owner.get(self.path).json()
        return shown

    def sample(self, **values: Any) -> None:
        async def add(session: Any) -> None:
            now = self.installation.clock()
            session.add(MetricSample(project_id=self.id, at=now, values=UP | values))

        self.installation.change(add)

    def notices(self) -> list[tuple[str, str]]:
        """Return the notices of the outbox: their types and targets."""
        entries = self.installation.rows(select(OutboxEntry).order_by(OutboxEntry.id))
        return [
            (entry.payload["notice"]["type"], entry.payload["target"])
            for entry in entries
            if entry.kind == "send notice"
        ]
