"""The declarations of databases with a driver of ODBC; imports nothing of the driver manager."""

from caraway_core.loading.declarations import CatalogConnector, Connector, DatabaseReader
from caraway_plugins.sources.foreign_dialects import DIALECTS

_PARAMS = frozenset(
    "odbc_connection_string odbc_username odbc_password odbc_query_timeout "
    "odbc_max_bytes_per_batch odbc_max_num_rows_per_batch odbc_max_text_size "
    "odbc_max_binary_size odbc_dialect sql_dialect".split()
)
ODBC = Connector("caraway_plugins.sources.odbc.source:OdbcSource", _PARAMS)
ODBC_CATALOG = CatalogConnector("caraway_plugins.sources.odbc.catalog:OdbcCatalog", _PARAMS)
ODBC_READER = DatabaseReader("caraway_plugins.sources.odbc.reader:OdbcReader", dialects=DIALECTS)
