"""The logs of accelerated datasets, as they stand, and what statements read of them."""

from collections.abc import Mapping
from dataclasses import replace

from caraway_core.changes import Log, Logs
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import Statement
from caraway_core.tables import StoredTable
from caraway_engine import entries
from caraway_engine.distribution import Analysis
from caraway_engine.sessions import Session


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
    statement: Statement, analysis: Analysis, session: Session
) -> tuple[Statement, Analysis]:
    """Leave out the logs of tables that a statement does not read: it takes them along."""
    # One that asks for changes proves by its logs of which state it asks.
    if not statement.logs or statement.as_changes:
        return statement, analysis
    specs = (session.snapshot.tables.get(table) for table in analysis.tables)
    keys = {spec.key for spec in specs if isinstance(spec, StoredTable)}
    logs = {key: log for key, log in statement.logs.items() if key in keys}
    if logs:
        # The same statement gives other rows once there are more changes.
        analysis = replace(analysis, reads_only_catalog=False)
    return replace(statement, logs=logs), analysis


def undivided(session: Session, logs: Logs) -> frozenset[TableName]:
    """Name the tables whose changes cannot be told apart by what an executor has of them."""
    if not logs:
        return frozenset()
    return frozenset(
        name
        for name, spec in session.snapshot.tables.items()
        if isinstance(spec, StoredTable) and spec.key in logs and entries.buckets(spec) is None
    )
