"""Flight SQL: the commands and actions that its drivers send, one module for each family.

Only this package knows the messages of the protocol.
"""

from caraway_gateway.flight.sql.service import FlightSql

__all__ = ["FlightSql"]
