"""The declarations of Flight SQL servers, with their dialects; imports nothing of the driver."""

from caraway_core.loading.declarations import CatalogConnector, Connector, DatabaseReader
from caraway_core.loading.dialects import Dialect

_CASTS = {
    "int8": "CAST({} AS SMALLINT)",
    "int16": "CAST({} AS SMALLINT)",
    "int32": "CAST({} AS INTEGER)",
    "int64": "CAST({} AS BIGINT)",
    "text": "CAST({} AS VARCHAR)",
}
ANY_SERVER = Dialect(
    kinds=frozenset({"bool", "int", "text", "date"}),
    prefiltered=frozenset({"text"}),
    exact=frozenset({"group", "sort", "limit", "offset", "count", "extreme"}),
    literals={
        "true": "TRUE",
        "false": "FALSE",
        "int": "{}",
        "smallest": "(-9223372036854775807 - 1)",
        "text": "'{}'",
        "date": "DATE '{}'",
    },
    casts=_CASTS,
    backslash="",
    has_nulls_order=False,
    names_answers=True,
)
"""What standard SQL determines. Sums of integers overflow in some servers, decimals are compared as
doubles in others, collations and time zones are not known, and a backslash may be an escape."""

CARAWAY_SERVER = Dialect(
    kinds=frozenset({"bool", "int", "decimal", "text", "date", "timestamp", "timestamptz"}),
    prefiltered=frozenset({"timestamp", "timestamptz"}),
    exact=frozenset(
        {
            "like", "group", "sort", "limit", "offset", "filter", "count", "count distinct",
            "extreme", "sum int", "sum decimal",
        }
    ),
    literals={
        "true": "TRUE",
        "false": "FALSE",
        "int": "CAST({} AS BIGINT)",
        "smallest": "CAST('-9223372036854775808' AS BIGINT)",
        "text": "'{}'",
        "date": "DATE '{}'",
        "timestamp": "arrow_cast('{}', 'Timestamp(Microsecond, None)')",
        "timestamptz": "arrow_cast('{}Z', 'Timestamp(Microsecond, Some(\"UTC\"))')",
    },
    casts=_CASTS,
    names_answers=True,
)  # fmt: skip
"""The same engine; another release of it may do arithmetic otherwise."""

_CLIENT = frozenset({"client_timeout"})
_FLIGHTSQL = _CLIENT | frozenset(
    "flightsql_endpoint flightsql_username flightsql_password flightsql_token "
    "flightsql_tls_root_certs".split()
)
FLIGHTSQL = Connector("caraway_plugins.sources.flightsql.source:FlightSqlSource", _FLIGHTSQL)
FLIGHTSQL_CATALOG = CatalogConnector(
    "caraway_plugins.sources.flightsql.catalog:FlightSqlCatalog", _FLIGHTSQL
)
FLIGHTSQL_READER = DatabaseReader(
    "caraway_plugins.sources.flightsql.reader:FlightSqlReader", dialect=ANY_SERVER
)
_CARAWAY = _CLIENT | frozenset("caraway_endpoint caraway_api_key caraway_tls_root_certs".split())
CARAWAY = Connector("caraway_plugins.sources.flightsql.source:CarawaySource", _CARAWAY)
CARAWAY_CATALOG = CatalogConnector(
    "caraway_plugins.sources.flightsql.catalog:CarawayCatalog", _CARAWAY
)
CARAWAY_READER = DatabaseReader(
    "caraway_plugins.sources.flightsql.reader:FlightSqlReader", dialect=CARAWAY_SERVER
)
