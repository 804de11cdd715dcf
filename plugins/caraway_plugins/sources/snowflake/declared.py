"""The declarations of Snowflake, with its dialect; imports nothing of the driver."""

from caraway_core.loading.declarations import Connector, DatabaseReader
from caraway_core.loading.dialects import Dialect

DIALECT = Dialect(
    kinds=frozenset({"bool", "int", "decimal", "text", "date", "timestamp"}),
    prefiltered=frozenset({"text"}),
    exact=frozenset(
        {"group", "sort", "limit", "offset", "count", "count distinct", "extreme",
         "sum short decimal"}
    ),
    literals={
        "true": "TRUE",
        "false": "FALSE",
        "int": "{}",
        "smallest": "-9223372036854775808",
        "decimal": "{}",
        "text": "'{}'",
        "date": "DATE '{}'",
        "timestamp": "TO_TIMESTAMP_NTZ('{}')",
    },
    casts=dict.fromkeys(("int8", "int16", "int32", "int64"), "{}"),
    backslash="",
    checks_columns=True,
    most_digits=38,
    names_answers=True,
    no_limit="LIMIT NULL",
)  # fmt: skip
"""What its documentation determines: there is no server that tests could compare with the engine.
Integers are decimals, whose values the reader checks. A backslash is an escape in texts, and in
names it is not."""

SNOWFLAKE = Connector(
    "caraway_plugins.sources.snowflake.source:SnowflakeSource",
    frozenset(
        "client_timeout snowflake_account snowflake_username snowflake_password "
        "snowflake_warehouse snowflake_role snowflake_auth_type snowflake_private_key_path "
        "snowflake_private_key_passphrase snowflake_host snowflake_port snowflake_protocol".split()
    ),
)
SNOWFLAKE_READER = DatabaseReader("caraway_plugins.sources.adbc.reader:AdbcReader", dialect=DIALECT)
