"""A management service in the process of the test, over SQLite or a real PostgreSQL."""

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import anyio.from_thread
import httpx2
import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI
from sqlalchemy import Select
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.testclient import TestClient

from caraway_management import accounts, composition
from caraway_management.api import app
from caraway_management.api.app import Application
from caraway_management.api.authenticating import CSRF_HEADER, SESSION_COOKIE
from caraway_management.credentials import sessions
from caraway_management.credentials.passwords import Passwords
from caraway_management.credentials.settings import CredentialSettings
from caraway_management.domain.scopes import EVERYTHING, Role
from caraway_management.outbox import Worker
from caraway_management.sealing import keys
from caraway_management.sealing.keys import GivenKeys
from caraway_management.sealing.sealer import Sealer
from caraway_management.services import Rates, Services
from caraway_management.store import database, migrations
from caraway_management.store.database import Database
from caraway_management.store.tables import Member, Org, User
from tests.kit import postgres
from tests.kit.fake_deployer import FakeDeployer

_Result = TypeVar("_Result")
_numbers = itertools.count(1)
PUBLIC_URL = "http://testserver"
FAST_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
BEGAN = datetime(2026, 11, 26, 12, tzinfo=UTC)


class Clock:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.moment = BEGAN

    def __call__(self) -> datetime:
        return self.moment

    def advance(self, **by: float) -> None:
        self.moment += timedelta(**by)


class Caller:
    """Sends requests with one credential."""

    def __init__(self, client: TestClient, token: str | None, org: str | None = None) -> None:
        self.token = token
        self._client = client
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self.act_in(org)

    @classmethod
    def with_cookie(cls, client: TestClient, session: str, org: str | None = None) -> "Caller":
        """Return a caller that sends a session as the pages of a browser do."""
        made = cls(client, None, org)
        made._headers |= {
            "cookie": f"{SESSION_COOKIE}={session}",
            CSRF_HEADER: sessions.csrf_value(session),
        }
        return made

    def act_in(self, org: str | None) -> None:
        """Name the organization of all further requests."""
        self._headers.pop("x-org-name", None)
        if org is not None:
            self._headers["x-org-name"] = org

    def send(self, method: str, path: str, **arguments: Any) -> httpx2.Response:
        headers = self._headers | arguments.pop("headers", {})
        return self._client.request(method, path, headers=headers, **arguments)

    def get(self, path: str, **arguments: Any) -> httpx2.Response:
        return self.send("GET", path, **arguments)

    def post(self, path: str, json: Any = None, **arguments: Any) -> httpx2.Response:
        return self.send("POST", path, json=json, **arguments)

    def put(self, path: str, json: Any = None, **arguments: Any) -> httpx2.Response:
        return self.send("PUT", path, json=json, **arguments)

    def patch(self, path: str, json: Any = None, **arguments: Any) -> httpx2.Response:
        return self.send("PATCH", path, json=json, **arguments)

    def delete(self, path: str, **arguments: Any) -> httpx2.Response:
        return self.send("DELETE", path, **arguments)


class Installation:
    """A service with its database and a clock; `client` sends requests to it."""

    def __init__(
        self, services: Services, clock: Clock, client: TestClient, deployer: FakeDeployer
    ) -> None:
        self.services = services
        self.clock = clock
        self.client = client
        self.deployer = deployer
        self.worker = Worker(services.database, clock, composition.handlers(services))

    def work(self) -> None:
        """Do everything of the outbox that is due now."""
        while self.run(self.worker.run_once):
            pass

    def run(self, work: Callable[..., Awaitable[_Result]], *arguments: Any) -> _Result:
        """Run a coroutine function on the loop of the service."""
        portal = self.client.portal
        assert isinstance(portal, anyio.from_thread.BlockingPortal)
        return portal.call(work, *arguments)

    def change(self, work: Callable[[AsyncSession], Awaitable[_Result]]) -> _Result:
        """Run work in a transaction of its own."""

        async def changed() -> _Result:
            async with self.services.database.change() as session:
                return await work(session)

        return self.run(changed)

    def wait_for_records(self) -> None:
        """Return once the changes are written for which no response waited."""
        self.run(self.services.database.later.written)

    def rows(self, query: Select[_Result]) -> list[_Result]:
        """Return the first column of a query."""

        async def read() -> list[_Result]:
            await self.services.database.later.written()
            async with self.services.database.read() as session:
                return list(await session.scalars(query))

        return self.run(read)

    def add_user(self, name: str = "", *, is_administrator: bool = False) -> User:
        async def add(session: AsyncSession) -> User:
            return await accounts.add_user(
                session, self.clock(), name or f"user{next(_numbers)}",
                is_administrator=is_administrator,
            )  # fmt: skip

        return self.change(add)

    def add_org(self, name: str, owner: User, plan: str = "enterprise") -> Org:
        async def add(session: AsyncSession) -> Org:
            present = await session.get_one(User, owner.id)
            return await accounts.add_organization(session, self.clock(), name, present, plan)

        return self.change(add)

    def add_member(self, org: Org, role: Role, name: str = "") -> User:
        user = self.add_user(name)

        async def add(session: AsyncSession) -> None:
            session.add(Member(org_id=org.id, user_id=user.id, role=role, created_at=self.clock()))
            (await session.get_one(User, user.id)).home_org_id = org.id

        self.change(add)
        return user

    def sign_in(
        self, user: User, *scopes: str, org_id: int | None = None, org: str | None = None
    ) -> Caller:
        """Return a caller with a new token of the user; `org` is the header of its requests."""

        async def add(session: AsyncSession) -> str:
            present = await session.get_one(User, user.id)
            token = await accounts.add_token(
                session, self.clock(), present, "test",
                scopes=scopes or (EVERYTHING,), org_id=org_id,
            )  # fmt: skip
            return token.value

        return Caller(self.client, self.change(add), org)

    def anonymous(self) -> Caller:
        return Caller(self.client, None)


@contextlib.contextmanager
def installation(
    url: URL, *, is_prepared: bool = False, routes: FastAPI | None = None, **parts: Any
) -> Iterator[Installation]:
    """Serve over a database, with its tables and plans, which a prepared one has already.

    `parts` replaces parts of the services, and `routes` the routes.
    """
    clock = Clock()
    opened = Database(url)
    deployer = FakeDeployer()
    services = Services(
        opened,
        new_sealer(clock),
        clock,
        Rates(1_000_000, 1_000_000),
        deployer=deployer,
        passwords=Passwords(FAST_HASHER),
        **{"credentials": CredentialSettings(PUBLIC_URL), **parts},
    )
    application = Application(services, routes)
    with TestClient(application, raise_server_exceptions=False) as client:
        made = Installation(services, clock, client, deployer)
        if not is_prepared:
            made.run(_prepare, opened)
        try:
            yield made
        finally:
            made.run(application.aclose)
            made.run(opened.close)


async def _prepare(opened: Database) -> None:
    """Make the tables and the plans."""
    await migrations.upgrade(opened)
    async with opened.change() as session:
        await accounts.add_plans(session, BEGAN)


def _prepare_alone(url: URL) -> None:
    async def prepare() -> None:
        opened = Database(url)
        try:
            await _prepare(opened)
        finally:
            await opened.close()

    asyncio.run(prepare())


def declared_app() -> FastAPI:
    """Return the application, to read its declarations."""
    return app.declare()


def new_sealer(clock: Callable[[], datetime]) -> Sealer:
    """Return a sealer with a new key."""
    return Sealer(GivenKeys(keys.parse(keys.new_line(), "the test")), clock)


def embedded_url(folder: Path) -> URL:
    """Return the URL of a new SQLite database."""
    return database.embedded(folder)


@cache
def _prepared_file() -> bytes:
    """Return a SQLite database with tables and plans; migrations take longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        url = embedded_url(Path(folder))
        _prepare_alone(url)
        assert url.database is not None
        return Path(url.database).read_bytes()


def prepared_embedded_url(folder: Path) -> URL:
    """Return the URL of a new SQLite database with tables and plans."""
    url = embedded_url(folder)
    assert url.database is not None
    Path(url.database).write_bytes(_prepared_file())
    return url


def prepared_url(request: pytest.FixtureRequest, folder: Path) -> URL:
    """Return the URL of a new database with tables and plans; the parameter is its kind."""
    if request.param == "sqlite":
        return prepared_embedded_url(folder)
    template = request.getfixturevalue("postgres_template")
    return new_postgres_url(request.getfixturevalue("postgres_server"), template)


def prepare_template(server: postgres.Server) -> str:
    """Make a PostgreSQL database with tables and plans; return its name."""
    url = new_postgres_url(server)
    _prepare_alone(url)
    assert url.database is not None
    return url.database


def new_postgres_url(server: postgres.Server, template: str = "template1") -> URL:
    """Return the URL of a new database of a PostgreSQL server."""
    name = f"management_{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return URL.create(
        "postgresql+asyncpg",
        username="postgres",
        database=name,
        query={"host": server.params["pg_host"]},
    )
