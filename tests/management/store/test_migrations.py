import asyncio
import hashlib
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, select, text
from sqlalchemy.engine import URL

from caraway_management.store import fitting, migrations
from caraway_management.store.database import Database
from caraway_management.store.tables import Base, Member

RELEASED = {
    "0001": "516975bb524746f56e4808c53404f7672fd9fac0d5722dc9bec095dcd62f8a9b",
    "0002": "7501acb0e6276637ffc41400d49ffa5b7d9d7d2b0142fae1055fb77a35b4f32b",
}
"""The hash of each revision that has a successor."""
FIRST_ROWS = (
    "INSERT INTO users (id, username, username_key, is_administrator, created_at)"
    " VALUES (1, 'ann', 'ann', TRUE, 0)",
    "INSERT INTO plans (name, limits, revision, updated_at) VALUES ('pro', '{}', 1, 0)",
    "INSERT INTO orgs (id, name, name_key, plan, revision, created_at)"
    " VALUES (1, 'acme', 'acme', 'pro', 1, 0)",
    "INSERT INTO members (org_id, user_id, role, created_at) VALUES (1, 1, 'owner', 0)",
)


def _differences(connection: Connection) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


async def test_migrations_make_the_tables_that_the_code_declares(database_url: URL) -> None:
    database = Database(database_url)

    try:
        assert await migrations.present(database) is None
        await migrations.upgrade(database)
        assert await migrations.present(database) == migrations.newest()
        async with database.read() as session:
            assert await (await session.connection()).run_sync(_differences) == []
    finally:
        await database.close()


@pytest.mark.parametrize("has_changes", [False, True])
async def test_rows_of_the_first_release_are_kept(database_url: URL, has_changes: bool) -> None:
    """A development version had the changes of the second revision in its first one."""
    database = Database(database_url)
    try:
        await migrations.upgrade(database, "0001")
        async with database.change() as session:
            for statement in FIRST_ROWS:
                await session.execute(text(statement))
        if has_changes:
            await migrations.upgrade(database, "0002")
            async with database.change() as session:
                await session.execute(text("UPDATE alembic_version SET version_num = '0001'"))
        await migrations.upgrade(database)
        assert await migrations.present(database) == migrations.newest()
        assert await fitting.problem(database) == ""
        async with database.read() as session:
            assert await (await session.connection()).run_sync(_differences) == []
            members = (await session.scalars(select(Member))).all()
        assert [(each.role, each.revision) for each in members] == [("owner", 1)]
    finally:
        await database.close()


def test_a_released_migration_is_never_changed() -> None:
    """A database at a revision would never get later additions to it: add a revision."""
    found = {
        each.revision: hashlib.sha256(Path(each.path).read_bytes()).hexdigest()
        for each in migrations.scripts().walk_revisions()
        if each.revision != migrations.newest()
    }
    assert found == RELEASED


async def test_instances_that_start_at_once_upgrade_once(database_url: URL) -> None:
    instances = [Database(database_url) for _ in range(3)]
    try:
        await asyncio.gather(*(migrations.upgrade(each) for each in instances))
        assert await migrations.present(instances[0]) == migrations.newest()
    finally:
        for each in instances:
            await each.close()
