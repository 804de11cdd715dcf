import asyncio

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection
from sqlalchemy.engine import URL

from caraway_management.store import migrations
from caraway_management.store.database import Database
from caraway_management.store.tables import Base


async def test_migrations_make_the_tables_that_the_code_declares(database_url: URL) -> None:
    database = Database(database_url)

    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))

    try:
        assert await migrations.present(database) is None
        await migrations.upgrade(database)
        assert await migrations.present(database) == migrations.newest()
        async with database.read() as session:
            assert await (await session.connection()).run_sync(differences) == []
    finally:
        await database.close()


async def test_instances_that_start_at_once_upgrade_once(database_url: URL) -> None:
    instances = [Database(database_url) for _ in range(3)]
    try:
        await asyncio.gather(*(migrations.upgrade(each) for each in instances))
        assert await migrations.present(instances[0]) == migrations.newest()
    finally:
        for each in instances:
            await each.close()
