"""The declarations of MySQL and MariaDB, with their dialect; imports nothing of the client."""

from caraway_core.loading.declarations import CatalogConnector, Connector, DatabaseReader
from caraway_core.loading.dialects import Dialect

_NARROWED = "CASE WHEN {{0}} BETWEEN {} AND {} OR {{0}} IS NULL THEN {{0}} ELSE {} END"
_TOO_LARGE = "9223372036854775807 + ({0} IS NOT NULL)"


def _narrowed(bits: int) -> str:
    return _NARROWED.format(-(1 << bits - 1), (1 << bits - 1) - 1, _TOO_LARGE)


DIALECT = Dialect(
    kinds=frozenset({"bool", "int", "uint", "decimal", "double", "text", "date", "timestamp"}),
    prefiltered=frozenset({"text", "date", "timestamp"}),
    exact=frozenset(
        {
            "add int", "subtract int", "multiply int", "cast int", "group", "sort", "limit",
            "offset", "count", "count distinct", "extreme", "sum int", "sum uint", "sum decimal",
        }
    ),
    literals={
        "true": "TRUE",
        "false": "FALSE",
        "int": "CAST({} AS SIGNED)",
        "smallest": "CAST('-9223372036854775808' AS SIGNED)",
        "decimal": "{}",
        "double": "CAST('{}' AS DOUBLE)",
        "text": "'{}'",
        "date": "DATE '{}'",
        "timestamp": "TIMESTAMP '{}'",
    },
    casts={
        "int8": _narrowed(8),
        "int16": _narrowed(16),
        "int32": _narrowed(32),
        "int64": "{}",
        "uint64": "{}",
        "high": "(({0} - ({0} % 4294967296 + 4294967296) % 4294967296) DIV 4294967296)",
        "text": "{}",
        "float": "({} + 0e0)",
        "double": "({} + 0e0)",
    },
    quote="`",
    bytes="CAST(CONVERT({} USING utf8mb4) AS BINARY)",
    checks_columns=True,
    no_limit="LIMIT 18446744073709551615",
    has_nulls_order=False,
    writes=frozenset({"case", "concat", "length", "double"}),
    concat="CONCAT({}, {})",
    length="CHAR_LENGTH({})",
)  # fmt: skip
"""Texts are compared as their collations do, and dates may be zero, so that what is equal to the
engine is found, and compared again by it."""

SESSION = (
    "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES', time_zone = '+00:00', "
    "net_write_timeout = 3600, wait_timeout = 3600"
)
"""Whatever the server's own mode and time zone are, and however slowly rows are taken."""
READ_ONLY = "SET SESSION TRANSACTION READ ONLY"

_LOGIN = frozenset(
    "mysql_connection_string mysql_host mysql_tcp_port mysql_db mysql_user mysql_pass "
    "mysql_sslmode mysql_sslrootcert".split()
)
MYSQL = Connector(
    "caraway_plugins.sources.mysql.source:MysqlSource",
    _LOGIN,
    modes=("full", "append", "changes", "disabled"),
)
MYSQL_READER = DatabaseReader(
    "caraway_plugins.sources.mysql.reader:MysqlReader",
    dialect=DIALECT,
    is_writable=True,
    is_changeable=True,
    is_merging=True,
    is_creating=True,
)
MYSQL_CATALOG = CatalogConnector("caraway_plugins.sources.mysql.tables:MysqlCatalog", _LOGIN)
