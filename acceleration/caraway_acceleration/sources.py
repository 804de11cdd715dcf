"""Names the accelerated datasets whose statements have to do with their sources."""

from dataclasses import dataclass

from caraway_core.ids import TableName


@dataclass(frozen=True, slots=True)
class PassthroughSources:
    """What statements over accelerated datasets have to do with their sources.

    Writes to those `taking` go to their source; the source of those `answering` answers where they
    have no rows; those `logged` have no source of rows, and writes become changes of their log.
    """

    taking: frozenset[TableName] = frozenset()
    answering: frozenset[TableName] = frozenset()
    logged: frozenset[TableName] = frozenset()
