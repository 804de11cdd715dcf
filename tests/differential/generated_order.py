"""The order that a generated query promises for its rows."""

from caraway_core.errors import QueryError
from tests.differential.asking import Pair
from tests.differential.comparing import ANY_ORDER, Order
from tests.differential.generated import Query

MOST_ROWS = 200_000
"""Nested cross joins have more rows, in tiny batches, and would only cost time."""


def order(query: Query, pair: Pair) -> Order:
    if not query.sort_places:
        return ANY_ORDER
    whole = pair.reference.outcome(query.whole) if query.whole else None
    return Order("keys", query.sort_places, None if isinstance(whole, QueryError) else whole)
