"""The declarations of ClickHouse, with its dialect; imports nothing of the client."""

from caraway_core.loading.declarations import CatalogConnector, Connector, DatabaseReader
from caraway_core.loading.dialects import Dialect

DIALECT = Dialect(
    kinds=frozenset({"bool", "int", "uint", "decimal", "double", "text", "date", "timestamptz"}),
    exact=frozenset(
        {
            "like", "cast int", "group", "sort", "limit", "offset", "filter", "join", "outer join",
            "count", "count distinct", "extreme", "sum int", "sum uint", "sum short decimal",
        }
    ),
    literals={
        "true": "true",
        "false": "false",
        "int": "toInt64({})",
        "smallest": "toInt64('-9223372036854775808')",
        "decimal": "toDecimal256('{}', 38)",
        "double": "toFloat64('{}')",
        "text": "'{}'",
        "date": "toDate32('{}')",
        "timestamptz": "toDateTime64('{}', 6, 'UTC')",
    },
    casts={
        "int8": "accurateCast({}, 'Nullable(Int8)')",
        "int16": "accurateCast({}, 'Nullable(Int16)')",
        "int32": "accurateCast({}, 'Nullable(Int32)')",
        "int64": "accurateCast({}, 'Nullable(Int64)')",
        "uint64": "{}",
        "high": "bitShiftRight({}, 32)",
        "text": "toString({})",
    },
    backslash="\\\\",
    is_nan="isNaN({})",
    years=(1900, 2261),
    names_answers=True,
    checks_columns=True,
)  # fmt: skip
"""Sums of integers wrap around as those of the engine do, which checks them. Arithmetic wraps, too,
and is not checked, so it is not sent. Older servers take dates of other years for their nearest."""

_LOGIN = frozenset(
    "clickhouse_connection_string clickhouse_host clickhouse_http_port clickhouse_tcp_port "
    "clickhouse_db clickhouse_user clickhouse_pass clickhouse_secure connection_timeout".split()
)
CLICKHOUSE = Connector("caraway_plugins.sources.clickhouse.source:ClickhouseSource", _LOGIN)
CLICKHOUSE_CATALOG = CatalogConnector(
    "caraway_plugins.sources.clickhouse.catalog:ClickhouseCatalog", _LOGIN
)
CLICKHOUSE_READER = DatabaseReader(
    "caraway_plugins.sources.clickhouse.reader:ClickhouseReader", dialect=DIALECT
)
