"""The declarations of DuckDB, with its dialect; imports nothing of it."""

from caraway_core.loading.declarations import CatalogConnector, Connector, DatabaseReader
from caraway_core.loading.dialects import Dialect

DIALECT = Dialect(
    kinds=frozenset(
        {"bool", "int", "uint", "decimal", "double", "text", "date", "timestamp", "timestamptz"}
    ),
    exact=frozenset(
        {
            "like", "add int", "subtract int", "multiply int", "cast int", "group", "sort",
            "limit", "offset", "filter", "join", "outer join", "count", "count distinct",
            "extreme", "sum int", "sum uint", "sum decimal",
        }
    ),
    literals={
        "true": "TRUE",
        "false": "FALSE",
        "int": "CAST({} AS BIGINT)",
        "smallest": "CAST('-9223372036854775808' AS BIGINT)",
        "decimal": "{}",
        "double": "CAST('{}' AS DOUBLE)",
        "text": "'{}'",
        "date": "DATE '{}'",
        "timestamp": "TIMESTAMP '{}'",
        "timestamptz": "TIMESTAMPTZ '{}+00'",
    },
    casts={
        "int8": "CAST({} AS TINYINT)",
        "int16": "CAST({} AS SMALLINT)",
        "int32": "CAST({} AS INTEGER)",
        "int64": "CAST({} AS BIGINT)",
        "uint64": "CAST({} AS UBIGINT)",
        "high": "({} >> 32)",
        "double": "CAST({} AS DOUBLE)",
        "text": "CAST({} AS VARCHAR)",
    },
    is_nan="{} = CAST('NaN' AS DOUBLE)",
    most_digits=18,
    writes=frozenset({"case", "concat", "length", "double"}),
    concat="({} || {})",
    length="length({})",
    fails="CAST(CAST({} AS VARCHAR) || '?' AS BOOLEAN)",
)  # fmt: skip
"""Decimals that meet have at most 18 digits: for more, DuckDB may have no common type."""

DUCKDB = Connector(
    "caraway_plugins.sources.duckdb.source:DuckdbSource",
    frozenset({"duckdb_open"}),
    is_local=True,
    poll_s=1.0,
)
DUCKDB_READER = DatabaseReader(
    "caraway_plugins.sources.duckdb.reader:DuckdbReader",
    dialect=DIALECT,
    is_writable=True,
    is_changeable=True,
    is_merging=True,
    is_creating=True,
)
DUCKDB_CATALOG = CatalogConnector(
    "caraway_plugins.sources.duckdb.tables:DuckdbCatalog",
    frozenset({"duckdb_open"}),
    is_local=True,
    poll_s=1.0,
)
