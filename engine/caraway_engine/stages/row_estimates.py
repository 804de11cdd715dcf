"""Estimates rows of tables and of joins from facts that may be wrong: no answer depends on them."""

import math
from collections.abc import Collection, Mapping

from substrait.algebra_pb2 import Rel

from caraway_core.ids import TableName
from caraway_engine.stages import reads
from caraway_engine.stages.graph import Cluster
from caraway_engine.stages.relations import width

_VALUE_BYTES = 16
"""More bytes than most values take, so that only joins with few rows seem smaller by estimates."""


class RowEstimates:
    """The rows of the tables of a cluster, and of joins by their tables."""

    def __init__(
        self,
        cluster: Cluster,
        divided: Collection[TableName],
        joined_rows: Mapping[frozenset[TableName], float],
    ) -> None:
        self._cluster = cluster
        self._divided = divided
        self._joined_rows = joined_rows

    def joined_bytes(self, join: Rel) -> float:
        """Return the size of the rows of a join; infinite if nothing is known."""
        tables = reads.tables(join)
        rows = self._joined_rows.get(frozenset(tables))
        if rows is None or len(set(tables)) < len(tables):
            return math.inf
        return rows * width(join) * _VALUE_BYTES

    def may_group_first(self, left: Rel, right: Rel) -> bool:
        """Return whether tasks divide the right side, and many of its rows may match each row.

        Rows of a left side that is not a whole table reduce the right side instead.
        """
        if not reads.is_whole_table(left) or not set(self._divided) & set(reads.tables(right)):
            return False
        of_left, of_right = self._most_rows(left), self._most_rows(right)
        return self._cluster.policy.may_group_first(of_left, of_right)

    def _most_rows(self, root: Rel) -> int | None:
        """Return the rows of the largest table that is read, or None if any is not known."""
        facts = [self._cluster.tables.get(each) for each in reads.tables(root)]
        rows = [None if each is None else each.rows for each in facts]
        known = [each for each in rows if each is not None]
        return max(known, default=0) if len(known) == len(rows) else None
