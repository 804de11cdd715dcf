"""The number of rows that each share of a search returns at first.

Of the best 100 rows, each of two executors probably has about half. To ask each for 100 doubles the
work of the search. So shares are asked for the rows that they have with a good chance. One that may
have more is asked again, for all of them.
"""

import math
from collections import OrderedDict

from caraway_core.index_orders import IndexOrder
from caraway_scheduler.dispatch.indexes.index_building import Shares

_FEWEST = 50
"""Fewer rows take no longer than these."""
_DEVIATIONS = 3
_MOST_KINDS = 1_000
_MEMORY = 0.9
_MOST_MISSED = 0.15
"""Where more searches had to ask again, shares return all rows."""
_FADING = 0.98
_Key = tuple[str, type]
"""A version, and whether it was searched by vectors or by words."""


def likely_rows(limit: int, shares: int) -> int:
    """Return how many of the best rows a share has at most, by chance: once in 700 it has more."""
    expected = limit / shares
    deviation = math.sqrt(expected * (1 - 1 / shares))
    return min(limit, max(_FEWEST, math.ceil(expected + _DEVIATIONS * deviation)))


class ShareLimits:
    """Learns of which tables the best rows are spread over all shares.

    They are not where rows are divided by what is searched for, such as by time or by topic.
    """

    def __init__(self) -> None:
        self._missed: OrderedDict[_Key, float] = OrderedDict()
        """The part of the last searches of a kind that had to ask again."""

    def limit_of(self, version_key: str, order: IndexOrder, shares: Shares) -> int:
        """Return the number of rows that each share returns at first."""
        if len(shares) < 2:
            return order.limit
        key = version_key, type(order.by)
        missed = self._missed.get(key, 0.0)
        if missed > _MOST_MISSED:
            self._missed[key] = missed * _FADING  # Rows may be spread by now.
            return order.limit
        return likely_rows(order.limit, len(shares))

    def note(self, version_key: str, order: IndexOrder, *, was_missed: bool) -> None:
        """Note whether shares with a limit had to be asked again."""
        key = version_key, type(order.by)
        before = self._missed.get(key, 0.0)
        self._missed[key] = before * _MEMORY + was_missed * (1 - _MEMORY)
        self._missed.move_to_end(key)
        if len(self._missed) > _MOST_KINDS:
            self._missed.popitem(last=False)
