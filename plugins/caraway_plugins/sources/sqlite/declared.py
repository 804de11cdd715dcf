"""The declarations of SQLite, with its dialect; imports nothing of it."""

from caraway_core.loading.declarations import CatalogConnector, Connector, DatabaseReader
from caraway_core.loading.dialects import Dialect

_NARROWED = "CASE WHEN {{0}} BETWEEN {} AND {} OR {{0}} IS NULL THEN {{0}} ELSE {} END"
_TOO_LARGE = "abs(-9223372036854775807 - ({0} IS NOT NULL))"
"""SQLite has no cast that fails; the absolute value of the least integer does."""

_IS_WHOLE = "typeof({0}) IN ('integer', 'null')"
"""A sum or product that overflows is a double."""


def _narrowed(bits: int) -> str:
    return _NARROWED.format(-(1 << bits - 1), (1 << bits - 1) - 1, _TOO_LARGE)


DIALECT = Dialect(
    kinds=frozenset({"bool", "int", "text", "date"}),
    exact=frozenset(
        {
            "add int", "subtract int", "multiply int", "cast int", "group", "sort", "limit",
            "offset", "filter", "count", "count distinct", "extreme", "sum int",
        }
    ),
    literals={
        "true": "TRUE",
        "false": "FALSE",
        "int": "CAST({} AS INTEGER)",
        "smallest": "CAST('-9223372036854775808' AS INTEGER)",
        "text": "'{}'",
        "date": "'{}'",
    },
    casts={
        "int8": _narrowed(8),
        "int16": _narrowed(16),
        "int32": _narrowed(32),
        "int64": "{}",
        "high": "({} >> 32)",
        "text": "{}",
    },
    checked=f"CASE WHEN {_IS_WHOLE} THEN {{0}} ELSE {_TOO_LARGE} END",
    checks_columns=True,
    no_limit="LIMIT -1",
    writes=frozenset({"case", "concat"}),
    concat="({} || {})",
)  # fmt: skip
"""Without doubles, of whose literals SQLite keeps 15 digits."""

SQLITE = Connector(
    "caraway_plugins.sources.sqlite.source:SqliteSource",
    frozenset({"sqlite_file"}),
    is_local=True,
    poll_s=1.0,
)
SQLITE_READER = DatabaseReader(
    "caraway_plugins.sources.sqlite.reader:SqliteReader",
    dialect=DIALECT,
    is_writable=True,
    is_changeable=True,
    is_merging=True,
    is_creating=True,
)
SQLITE_CATALOG = CatalogConnector(
    "caraway_plugins.sources.sqlite.tables:SqliteCatalog",
    frozenset({"sqlite_file"}),
    is_local=True,
    poll_s=1.0,
)
