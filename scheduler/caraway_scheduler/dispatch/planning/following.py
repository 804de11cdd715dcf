"""Tracks the current log of each accelerated dataset, and narrows the logs of statements."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from caraway_core.changes import Log
from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_core.tables import StoredTable, TableSpec


class KnownLogs:
    """The log of each version, up to the entries that new statements read."""

    def __init__(self) -> None:
        self._logs: Mapping[str, Log] = {}

    def follow(self, spec: StoredTable, log: Log) -> None:
        """Let statements read a version with this log; () removes it."""
        # A new mapping each time, because running statements keep theirs.
        others = {key: each for key, each in self._logs.items() if key != spec.key}
        self._logs = {**others, spec.key: log} if log else others

    def log_of(self, spec: StoredTable) -> Log:
        """Return the log of a version."""
        return self._logs.get(spec.key, ())

    def given_to(self, statement: Statement) -> Statement:
        """Return the statement with the current logs, except where it names its own."""
        if not self._logs:
            return statement
        return replace(statement, logs={**self._logs, **statement.logs})


def narrowed(
    statement: Statement, read: Collection[TableName], tables: Mapping[TableName, TableSpec]
) -> Statement:
    """Remove the logs of tables that a statement does not read, to send less."""
    # A statement that asks for changes uses its logs to identify the state it asks for.
    if not statement.logs or statement.as_changes:
        return statement
    versions = (tables[table].version for table in read if table in tables)
    keys = {version.key for version in versions if version is not None}
    return replace(statement, logs={key: log for key, log in statement.logs.items() if key in keys})


def named(statement: Statement) -> Statement:
    """Keep only the keys of the logs: planning does not need the entries."""
    return (
        replace(statement, logs=dict.fromkeys(statement.logs, ())) if statement.logs else statement
    )
