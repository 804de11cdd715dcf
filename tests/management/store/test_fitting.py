"""Two releases of the service over one database."""

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.store import fitting, migrations
from caraway_management.store.database import Database
from tests.kit import management
from tests.kit.management import Installation


def migrate_as_a_newer_release(installation: Installation, *statements: str) -> None:
    """Change the tables, and leave a revision that this release does not know."""

    async def change(session: AsyncSession) -> None:
        for statement in (*statements, "UPDATE alembic_version SET version_num = '9999'"):
            await session.execute(text(statement))

    installation.change(change)


def readiness(installation: Installation) -> tuple[int, str]:
    """Return the status of the probe, and its words."""
    answer = installation.anonymous().get("/readyz")
    return answer.status_code, answer.json().get("error", "")


def test_an_instance_is_not_ready_before_the_migration(database_url: URL) -> None:
    with management.installation(database_url, is_prepared=True) as made:
        status, words = readiness(made)
        assert (status, "run caraway management migrate" in words) == (503, True), words
        made.run(migrations.upgrade, made.services.database)
        assert readiness(made) == (200, "")


def test_the_earlier_release_works_while_tables_and_columns_are_added(
    installation: Installation,
) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    migrate_as_a_newer_release(
        installation,
        "ALTER TABLE projects ADD COLUMN motto VARCHAR",
        "ALTER TABLE orgs ADD COLUMN stars INTEGER DEFAULT 0 NOT NULL",
        "CREATE TABLE badges (id INTEGER PRIMARY KEY)",
    )
    assert readiness(installation) == (200, "")
    caller = installation.sign_in(owner)
    assert caller.post("/v1/projects", {"name": "shop"}).status_code == 201
    assert caller.post("/v1/orgs", {"name": "umbrella"}).status_code == 201
    # An instance of the earlier release starts again, and leaves the newer tables alone.
    again = Database(installation.services.database.url)

    async def start() -> str:
        await migrations.upgrade(again)
        try:
            return await fitting.problem(again)
        finally:
            await again.close()

    assert installation.run(start) == ""
    assert installation.run(migrations.present, installation.services.database) == "9999"


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("ALTER TABLE projects RENAME COLUMN description TO words", "'projects.description'"),
        ("ALTER TABLE attempts RENAME TO tries", "no table 'attempts'"),
        ("ALTER TABLE attempts ADD COLUMN kind VARCHAR NOT NULL", "'attempts.kind' must be"),
    ],
)
def test_the_earlier_release_is_not_ready_once_something_that_it_needs_is_gone(
    installation: Installation, statement: str, missing: str
) -> None:
    if installation.services.database.is_embedded and "NOT NULL" in statement:
        statement = statement.replace(" NOT NULL", " NOT NULL DEFAULT ''")
        missing = ""
    migrate_as_a_newer_release(installation, statement)
    status, words = readiness(installation)
    assert (status, missing in words) == ((503 if missing else 200), True), words
    assert not missing or "'9999'" in words
