"""Dialects of databases that a driver of any kind reaches; imports nothing of a driver.

What a source of its own looks up is not known here: collations, enumerations and the session's
settings. So texts are compared again by the engine, and the session is set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from caraway_core.loading.dialects import ROWS_ALONE, Dialect, Kind, Operation
from caraway_plugins.sources.duckdb import declared as duckdb
from caraway_plugins.sources.flightsql.declared import ANY_SERVER
from caraway_plugins.sources.mysql import declared as mysql
from caraway_plugins.sources.postgres.dialect import POSTGRES
from caraway_plugins.sources.sqlite import declared as sqlite

_TEXTS: frozenset[Kind] = frozenset({"text"})
_OF_TEXTS: frozenset[Operation] = frozenset({"like"})
_SQLITE_TEXT = "CASE typeof({0}) WHEN 'real' THEN printf('%!.18g', {0}) ELSE CAST({0} AS TEXT) END"
"""SQLite's own cast keeps 15 digits of a double."""
DIALECTS: Mapping[str, Dialect] = {
    "none": ROWS_ALONE,
    "backquotes": Dialect(quote="`"),
    "standard": ANY_SERVER,
    "duckdb": replace(duckdb.DIALECT, prefiltered=_TEXTS, exact=duckdb.DIALECT.exact - _OF_TEXTS),
    "mysql": mysql.DIALECT,
    "postgresql": replace(POSTGRES, prefiltered=_TEXTS, exact=POSTGRES.exact - _OF_TEXTS),
    "sqlite": replace(
        sqlite.DIALECT,
        kinds=frozenset({"int", "text"}),
        prefiltered=_TEXTS,
        casts={**sqlite.DIALECT.casts, "text": _SQLITE_TEXT},
    ),
}
"""By the names that params have."""
SESSIONS: Mapping[str, Sequence[str]] = {
    "duckdb": ("SET TimeZone = 'UTC'",),
    "mysql": (mysql.SESSION, mysql.READ_ONLY),
    "postgresql": (
        "SET standard_conforming_strings = on",
        "SET timezone = 'UTC'",
        "SET default_transaction_read_only = on",
    ),
}
"""What is run when a connection was opened, since literals depend on it."""
