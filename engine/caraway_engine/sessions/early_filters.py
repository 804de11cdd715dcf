"""Finds the statements that gain if Parquet files are filtered while they are read.

The reader then decodes the columns of a filter first, and of the others only rows that pass. It
takes longer for each row that it decodes so. It pays where few rows pass, or where rows are wide.
"""

from collections.abc import Callable

import pyarrow as pa

from caraway_engine.join_orders import ColumnFacts, FactsOf, RowFacts, expressions, failing
from caraway_engine.statements import decorrelation, plan_facts, plan_nodes
from caraway_engine.statements.plan_nodes import HiddenError, PlanNode
from caraway_engine.table_functions import wording

types = pa.types
_LEAST_ROWS = 50_000
_MOST_COST = 0.5
"""The estimated cost by that of filtering later, up to which a statement filters early."""
_TEXT, _NUMBER, _CONDITION = 8.0, 1.0, 0.5
"""The cost of decoding a value, and of computing a condition for it."""
_PASSED_OVER, _SCATTERED = 0.15, 2.5
"""The cost of passing over a value by that of decoding it, and how many are decoded for one."""


def pay(optimized: object, facts_of: FactsOf) -> bool:
    """Return whether a statement that reads one table gains by an early filter.

    Any doubt means no: joins, tables of which nothing is known, conditions that may fail.
    """
    try:
        nodes = list(plan_nodes.nodes(optimized))
        scans = [each for each in nodes if each.kind == "TableScan"]
        if len(scans) != 1 or any(each.kind == "Join" for each in nodes):
            return False
        reading = _Reading(scans[0])
        # Facts come last: the first statement over a table waits until they are read.
        if reading.cost(lambda _: 0.0) > _MOST_COST or not reading.is_safe():
            return False
        facts = facts_of(reading.table)
        if facts is None or facts.rows < _LEAST_ROWS:
            return False
        known = reading.known(facts)
        return _MOST_COST >= reading.cost(
            lambda condition: expressions.passing(condition, known, facts.rows)
        )
    except (HiddenError, LookupError):
        return False


class _Reading:
    """A scan with its columns and conditions."""

    def __init__(self, scan: PlanNode) -> None:
        self.table = plan_facts.table_name(*scan.variant.fqn())
        self._conditions = scan.variant.filters()
        self._frame = decorrelation.frame(scan.plan)
        names = scan.variant.schema().field_names()
        self._fields = dict(zip(names, self._frame.schema(), strict=True))

    def is_safe(self) -> bool:
        """Return whether each condition has a value for all rows, whichever others they pass."""
        typed = wording.type_in(self._frame)
        return all(
            expressions.is_movable(each) and failing.cannot_fail(each, typed)
            for each in self._conditions
        )

    def known(self, facts: RowFacts) -> dict[str, ColumnFacts]:
        """Return the facts of columns by their qualified names."""
        return {
            name: facts.columns.get(field.name, ColumnFacts())
            for name, field in self._fields.items()
        }

    def cost(self, share: Callable[[object], float]) -> float:
        """Return the cost of reading with an early filter, by that of reading without.

        `share` returns the share of the rows that pass a condition. A scan without columns or
        conditions has nothing to gain.
        """
        left = {name: _decoding(field.type) for name, field in self._fields.items()}
        whole, cost, passing, decoded = sum(left.values()), 0.0, 1.0, 1.0
        if not left or not self._conditions:
            return 1.0
        for condition in self._conditions:
            names = expressions.columns(condition)
            cost += decoded * sum(left.pop(name, 0.0) + _CONDITION for name in names)
            passing *= share(condition)
            decoded = min(1.0, _PASSED_OVER + _SCATTERED * passing)
        return (cost + decoded * sum(left.values())) / whole


def _decoding(kind: pa.DataType) -> float:
    return _NUMBER if types.is_primitive(kind) else _TEXT
