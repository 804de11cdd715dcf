"""The declarations of Spark Connect, with its dialect; imports nothing of the driver."""

from caraway_core.loading.declarations import Connector, DatabaseReader
from caraway_core.loading.dialects import Dialect

DIALECT = Dialect(
    kinds=frozenset(
        {"bool", "int", "decimal", "double", "text", "date", "timestamp", "timestamptz"}
    ),
    prefiltered=frozenset({"text"}),
    exact=frozenset(
        {
            "group", "sort", "limit", "offset", "filter", "join", "outer join",
            "count", "count distinct", "extreme", "sum int", "sum short decimal",
        }
    ),
    literals={
        "true": "true",
        "false": "false",
        "int": "{}L",
        "smallest": "CAST('-9223372036854775808' AS BIGINT)",
        "decimal": "{}BD",
        "double": "CAST('{}' AS DOUBLE)",
        "text": "'{}'",
        "date": "DATE '{}'",
        "timestamp": "TIMESTAMP_NTZ '{}'",
        "timestamptz": "TIMESTAMP '{}+00:00'",
    },
    casts=dict.fromkeys(("int8", "int16", "int32", "int64"), "{}"),
    quote="`",
    bytes="CAST({} AS BINARY)",
    backslash="",
    apostrophe="",
    is_nan="isnan({})",
    most_digits=38,
    checks_columns=True,
    names_answers=True,
)  # fmt: skip
"""Two apostrophes end a text and begin another one, which is joined to it, and what a backslash is
depends on the session, so texts with them are not sent. Columns of Spark 4 may have a collation.
Arithmetic wraps or fails as the session says, so only sums are sent, which the engine checks."""

SPARK = Connector(
    "caraway_plugins.sources.spark.source:SparkSource",
    frozenset({"spark_remote", "spark_token"}),
)
SPARK_READER = DatabaseReader("caraway_plugins.sources.adbc.reader:AdbcReader", dialect=DIALECT)
