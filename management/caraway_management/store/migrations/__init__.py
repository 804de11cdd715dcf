"""Brings a database from any earlier revision to that of this release."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from caraway_core.errors import CarawayError
from caraway_management.store.database import Database

_LOCK = 4_270_116_502


async def upgrade(database: Database, revision: str = "head") -> None:
    """Upgrade the database in one transaction; instances that start at once wait for each other.

    Raises:
        CarawayError: the database is of a newer release.
    """
    async with database.change() as session:
        connection = await session.connection()
        if not database.is_embedded:
            await session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        await connection.run_sync(_upgrade, revision)


async def is_current(database: Database) -> bool:
    """Return whether the database has the revision of this release."""
    async with database.read() as session:
        connection = await session.connection()
        return await connection.run_sync(_revision) == scripts().get_current_head()


def scripts() -> ScriptDirectory:
    """Return the migrations of this release."""
    return ScriptDirectory.from_config(_config())


def _upgrade(connection: Connection, revision: str) -> None:
    present = _revision(connection)
    known = {script.revision for script in scripts().walk_revisions()}
    if present is not None and present not in known:
        raise CarawayError(
            f"the database has the revision '{present}', which this release does not know; "
            "start the release that wrote it, or a later one"
        )
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config
