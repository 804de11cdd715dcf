"""The logs of accelerated datasets, as they stand, and what statements read of them."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from caraway_core.changes import Log
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import Statement
from caraway_core.tables import StoredTable, TableSpec


class KnownLogs:
    """How far the log of each version counts for statements that begin now."""

    def __init__(self) -> None:
        self._logs: Mapping[str, Log] = {}

    def follow(self, spec: StoredTable, log: Log) -> None:
        """Have statements read a version with this log; () ends that."""
        # A new mapping each time: statements under way keep theirs.
        others = {key: each for key, each in self._logs.items() if key != spec.key}
        self._logs = {**others, spec.key: log} if log else others

    def of(self, spec: StoredTable) -> Log:
        return self._logs.get(spec.key, ())

    def given_to(self, statement: Statement) -> Statement:
        """Tell a statement how far to read, where it does not say so itself."""
        if not self._logs:
            return statement
        return replace(statement, logs={**self._logs, **statement.logs})


def narrowed(
    statement: Statement, read: Collection[TableName], tables: Mapping[TableName, TableSpec]
) -> Statement:
    """Leave out the logs of tables that a statement does not read: it takes them along."""
    # One that asks for changes proves by its logs of which state it asks.
    if not statement.logs or statement.as_changes:
        return statement
    versions = (tables[table].version for table in read if table in tables)
    keys = {version.key for version in versions if version is not None}
    return replace(statement, logs={key: log for key, log in statement.logs.items() if key in keys})


def named(statement: Statement) -> Statement:
    """Keep the names of the logs only: planning needs no entries, and there may be many."""
    return (
        replace(statement, logs=dict.fromkeys(statement.logs, ())) if statement.logs else statement
    )
