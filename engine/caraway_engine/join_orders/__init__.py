"""Orders the joins of optimized plans by facts that were measured of their tables.

The engine joins tables in the order in which a statement names them. This package makes another
plan with the same rows. It knows neither sessions nor how tables are loaded.
"""

from caraway_engine.join_orders.facts import ColumnFacts, FactsOf, RowFacts
from caraway_engine.join_orders.ordering import DEFAULT, OrderPolicy, ordered

__all__ = ["DEFAULT", "ColumnFacts", "FactsOf", "OrderPolicy", "RowFacts", "ordered"]
