"""Invitations by e-mail, and the page that their link leads to."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import composition
from caraway_management.api.authenticating import SESSION_COOKIE
from caraway_management.credentials import sessions
from caraway_management.notices.settings import MailServer, NoticeSettings
from caraway_management.outbox import Worker
from caraway_management.store.tables import Member, OutboxEntry, User
from tests.kit import mail, management
from tests.kit.mail import MailBox
from tests.kit.management import Caller, Installation


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """An installation whose mail server is not there yet."""
    notices = NoticeSettings(MailServer("127.0.0.1", 1, "caraway@example.com", is_plain=True))
    url = management.prepared_embedded_url(tmp_path)
    with management.installation(url, is_prepared=True, notices=notices) as made:
        yield made


async def send(made: Installation) -> MailBox:
    """Do the work that is due, while a mail server runs; return its mail."""
    async with mail.serving() as box:
        server = made.services.notices.mail
        assert server is not None
        object.__setattr__(server, "port", box.port)
        worker = Worker(made.services.database, made.clock, composition.letters(made.services))
        await worker.run_once()
    return box


def invite(installation: Installation) -> tuple[Caller, dict[str, object]]:
    owner = installation.add_user("ada")
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    made = caller.post("/v1/invitations", {"email": "new@example.com", "roles": ["viewer"]})
    assert made.status_code == 201
    body: dict[str, object] = made.json()
    return caller, body


def browser(installation: Installation, user: User) -> dict[str, str]:
    """Return the cookie of a browser in which the user is signed in."""

    async def add(session: AsyncSession) -> str:
        present = await session.get_one(User, user.id)
        now = installation.clock()
        return (await sessions.add_session(session, now, present, "127.0.0.1", "test")).value

    return {"cookie": f"{SESSION_COOKIE}={installation.change(add)}"}


def test_an_invitation_is_mailed_and_its_link_makes_a_member(installation: Installation) -> None:
    _, made = invite(installation)
    assert made["is_mailed"] is True
    [entry] = installation.rows(select(OutboxEntry))
    assert str(made["value"]) not in str(entry.payload)
    box = installation.run(send, installation)
    [message] = box.messages
    assert (message["To"], message["Subject"]) == ("new@example.com", "Invitation to acme")
    text = message.get_content()
    assert "ada invites you" in text and "the role viewer" in text
    link = next(line for line in text.splitlines() if line.startswith("http"))
    assert link.endswith(str(made["value"]))
    path = f"{urlsplit(link).path}?{urlsplit(link).query}"
    asked = installation.client.get(path, follow_redirects=False)
    assert asked.status_code == 303 and asked.headers["location"].startswith("./sign-in?")
    user = installation.add_user("new")
    cookie = browser(installation, user)
    page = installation.client.get(path, headers=cookie)
    assert page.status_code == 200 and "<b>acme</b>" in page.text
    csrf = page.text.partition('name="csrf" value="')[2].partition('"')[0]
    fields = {"csrf": csrf, "value": str(made["value"]), "decision": "approve"}
    forged = installation.client.post("/join", data=fields | {"csrf": "x"}, headers=cookie)
    assert (forged.status_code, forged.json()["code"]) == (403, "csrf_mismatch")
    joined = installation.client.post("/join", data=fields, headers=cookie)
    assert joined.status_code == 200, joined.text
    roles = installation.rows(select(Member.role).where(Member.user_id == user.id))
    assert roles == ["viewer"]
    assert installation.client.get(path, headers=cookie).status_code == 410


def test_a_revoked_invitation_is_not_mailed(installation: Installation) -> None:
    caller, made = invite(installation)
    assert caller.delete(f"/v1/invitations/{made['id']}").status_code == 204
    assert installation.run(send, installation).messages == []
    assert installation.rows(select(OutboxEntry)) == []
