"""Brings a database from any earlier revision to that of this release."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from caraway_management.store.database import Database

_LOCK = 4_270_116_502


async def upgrade(database: Database, revision: str = "head") -> None:
    """Upgrade the database in one transaction; instances that start at once wait for each other.

    A database of a newer release stays as it is.
    """
    async with database.change() as session:
        connection = await session.connection()
        if not database.is_embedded:
            await session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        await connection.run_sync(_upgrade, revision)


async def present(database: Database) -> str | None:
    """Return the revision of a database, or None if it has no tables."""
    async with database.read() as session:
        connection = await session.connection()
        return await connection.run_sync(revision_of)


@cache
def newest() -> str | None:
    """Return the revision of this release."""
    return scripts().get_current_head()


def scripts() -> ScriptDirectory:
    """Return the migrations of this release."""
    return ScriptDirectory.from_config(_config())


def _upgrade(connection: Connection, revision: str) -> None:
    present = revision_of(connection)
    known = {script.revision for script in scripts().walk_revisions()}
    if present is not None and present not in known:
        return
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database, or None if it has no tables."""
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config
