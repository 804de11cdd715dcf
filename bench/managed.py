"""A management service with 10,000 projects and 100,000 rows of activity, to measure."""

import contextlib
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncSession

from bench import servers
from caraway_management import accounts
from caraway_management.sealing import keys
from caraway_management.sealing.keys import KeyFile
from caraway_management.sealing.sealer import Sealer
from caraway_management.secrets import api_keys
from caraway_management.services import utc_now
from caraway_management.store import database, migrations
from caraway_management.store.database import Database
from caraway_management.store.tables import Activity, Project
from tests.kit import postgres

PROJECTS, ACTIVITY = 10_000, 100_000
MANIFEST = "version: v1\nkind: Caraway\nname: shop\n"
KINDS = ("sqlite", "postgresql")
_ROWS_AT_ONCE = 1_000
_TOKENS = 30
_ACTIONS = ("create_project", "update_project", "create_deployment", "set_secret")


@dataclass(frozen=True, slots=True)
class Place:
    """A database with an organization, and the files of the service that uses it."""

    folder: Path
    url: URL

    @property
    def key_file(self) -> Path:
        """The keys that seal secrets."""
        return self.folder / "keys"

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        """Open the database until the block ends."""
        found = Database(self.url)
        try:
            yield found
        finally:
            await found.close()

    def sealer(self) -> Sealer:
        """Return what seals with the keys of the place."""
        return Sealer(KeyFile(self.key_file), utc_now)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the database: an organization with projects, and tokens of its owner."""

    tokens: list[str]
    org_id: int
    user_id: int
    project_ids: list[int]


@contextlib.contextmanager
def places() -> Iterator[Mapping[str, Place]]:
    """Give a new database of each kind, with tables and plans. PostgreSQL syncs its commits."""
    with tempfile.TemporaryDirectory() as folder, postgres.serving(fsync="on") as server:
        made = {
            "sqlite": Place(Path(folder), database.embedded(Path(folder))),
            "postgresql": Place(
                Path(folder),
                URL.create(
                    "postgresql+asyncpg", username="postgres", database="postgres",
                    query={"host": server.params["pg_host"]},
                ),
            ),
        }  # fmt: skip
        made["sqlite"].key_file.write_text(keys.new_line())
        made["sqlite"].key_file.chmod(0o600)
        yield made


async def fill(place: Place, projects: int = PROJECTS, activity: int = ACTIVITY) -> Rows:
    """Make the tables, and an organization with projects and activity."""
    async with place.opened() as opened:
        await migrations.upgrade(opened)
        async with opened.change() as session:
            now = utc_now()
            await accounts.add_plans(session, now)
            owner = await accounts.add_user(session, now, "owner", is_administrator=True)
            org = await accounts.add_organization(session, now, "acme", owner, "enterprise")
            # Several, since each may send a limited number of requests in a minute.
            tokens = [
                (await accounts.add_token(session, now, owner, f"bench {each}")).value
                for each in range(_TOKENS)
            ]
            ids = await _add_projects(session, org.id, projects)
            await _add_activity(session, org.id, ids, activity)
        return Rows(tokens, org.id, owner.id, ids)


async def _add_projects(session: AsyncSession, org_id: int, number: int) -> list[int]:
    now = utc_now()
    rows = [
        {
            "org_id": org_id, "name": f"project-{each:05}", "name_key": f"project-{each:05}",
            "tags": {"team": f"team-{each % 10}"}, "manifest": MANIFEST, "config": {},
            "created_at": now, "updated_at": now,
        }
        for each in range(number)
    ]  # fmt: skip
    ids: list[int] = []
    for begin in range(0, number, _ROWS_AT_ONCE):
        part = rows[begin : begin + _ROWS_AT_ONCE]
        ids += await session.scalars(insert(Project).returning(Project.id), part)
    return ids


async def _add_activity(session: AsyncSession, org_id: int, ids: list[int], number: int) -> None:
    now = utc_now()
    for begin in range(0, number, _ROWS_AT_ONCE):
        rows: list[dict[str, Any]] = [
            {
                "org_id": org_id, "project_id": ids[each % len(ids)],
                "at": now - timedelta(seconds=number - each), "actor": f"user-{each % 50}",
                "credential_kind": "user", "credential_id": "token:1",
                "action": _ACTIONS[each % len(_ACTIONS)], "resource_kind": "project",
                "resource_id": str(ids[each % len(ids)]), "resource_name": "shop",
                "outcome": "refused" if each % 20 == 0 else "succeeded", "status": 200,
                "address": "127.0.0.1", "request_id": f"{each:032x}",
            }
            for each in range(begin, min(begin + _ROWS_AT_ONCE, number))
        ]  # fmt: skip
        await session.execute(insert(Activity), rows)


async def make_key(place: Place, project_id: int) -> str:
    """Make the keys of a project; return that of the service."""
    async with place.opened() as opened, opened.change() as session:
        made = await api_keys.make(session, place.sealer(), utc_now(), project_id)
        return made[api_keys.OF_SERVICE]


async def set_endpoint(place: Place, project_id: int, endpoint: str) -> None:
    """Give a project the address of its runtime."""
    async with place.opened() as opened, opened.change() as session:
        (await session.get_one(Project, project_id)).endpoint = endpoint


@contextlib.contextmanager
def serving(place: Place) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Serve the API over a database without a deployer; yield its address."""
    words = ["management", "--http", "127.0.0.1:0", "--data-dir", str(place.folder),
             "--key-file", str(place.key_file), "--deployer", "none"]  # fmt: skip
    if place.url.get_backend_name() != "sqlite":
        words += ["--database", place.url.render_as_string(hide_password=False)]
    with servers.started(*words) as (addresses, process):
        yield f"http://{addresses['http']}", process
