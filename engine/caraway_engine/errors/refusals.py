"""Says why a table cannot be registered."""

import logging

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_engine.errors import failures

logger = logging.getLogger(__name__)
_DEFECTS = (AssertionError, AttributeError, LookupError, NameError, RecursionError, TypeError)
"""Exceptions that mean a defect in our own code. Their texts do not help users."""


def reason(name: TableName, exc: BaseException) -> str:
    """Return why a table cannot be registered. Other tables are not affected."""
    if isinstance(exc, CarawayError):
        return exc.message
    if isinstance(exc, OSError) and exc.strerror:
        return f"its files cannot be read: {exc.strerror}"
    if isinstance(exc, Exception) and not isinstance(exc, _DEFECTS):
        return failures.translate(exc, tables=(), planning=True).message
    if isinstance(exc, KeyboardInterrupt | SystemExit):
        raise exc
    logger.error("table cannot be registered", exc_info=exc, extra={"table": name})
    return "its table cannot be registered; see the engine's log"
