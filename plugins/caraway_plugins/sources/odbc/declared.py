"""The declarations of databases with a driver of ODBC; imports nothing of the driver manager."""

from caraway_core.loading.declarations import Connector, DatabaseReader
from caraway_plugins.sources.foreign_dialects import DIALECTS

ODBC = Connector(
    "caraway_plugins.sources.odbc.source:OdbcSource",
    frozenset(
        "odbc_connection_string odbc_username odbc_password odbc_query_timeout "
        "odbc_max_bytes_per_batch odbc_max_num_rows_per_batch odbc_max_text_size "
        "odbc_max_binary_size odbc_dialect sql_dialect".split()
    ),
)
ODBC_READER = DatabaseReader("caraway_plugins.sources.odbc.reader:OdbcReader", dialects=DIALECTS)
