"""Compares the tables of a database with those that this release needs.

During a rollout two releases use one database. A migration that only adds tables and columns leaves
the earlier release at work; any other one does not, and then it must say so.
"""

from sqlalchemy import Connection, inspect
from sqlalchemy.engine.interfaces import ReflectedColumn

from caraway_management.store import migrations
from caraway_management.store.database import Database
from caraway_management.store.tables import Base


async def problem(database: Database) -> str:
    """Return why this release cannot use the database, in a sentence, or nothing if it can."""
    async with database.read() as session:
        connection = await session.connection()
        return await connection.run_sync(problem_of)


def problem_of(connection: Connection) -> str:
    """Return why this release cannot use the database, in a sentence, or nothing if it can."""
    present, own = migrations.revision_of(connection), migrations.newest()
    if present == own:
        return ""
    if present is None:
        return "the database has no tables yet; run caraway management migrate"
    if missing := _missing(connection):
        return (
            f"the database has revision '{present}', and this release needs '{own}': {missing}; "
            "run caraway management migrate of this release, or a release that has the revision"
        )
    return ""


def _missing(connection: Connection) -> str:
    """Return the first difference that this release cannot work with."""
    # Names without a schema.
    found = {
        table: {column["name"]: column for column in columns}
        for (_, table), columns in inspect(connection).get_multi_columns().items()
    }
    for table in Base.metadata.sorted_tables:
        columns = found.get(table.name)
        if columns is None:
            return f"there is no table '{table.name}'"
        for column in table.columns:
            if column.name not in columns:
                return f"there is no column '{table.name}.{column.name}'"
        for name, reflected in columns.items():
            if name not in table.columns and _is_asked_for(reflected):
                return f"the column '{table.name}.{name}' must be written, which is unknown here"
    return ""


def _is_asked_for(column: ReflectedColumn) -> bool:
    """Return whether rows need a value for a column."""
    return not column["nullable"] and column.get("default") is None
