"""The declarations of databases with a driver of ADBC; imports nothing of the driver manager."""

from caraway_core.loading.declarations import CatalogConnector, Connector, DatabaseReader
from caraway_plugins.sources.foreign_dialects import DIALECTS

_PARAMS = frozenset(
    "adbc_driver adbc_driver_path adbc_entrypoint adbc_uri adbc_username adbc_password "
    "adbc_driver_options adbc_catalog adbc_schema adbc_dialect".split()
)
ADBC = Connector("caraway_plugins.sources.adbc.source:AdbcSource", _PARAMS)
ADBC_CATALOG = CatalogConnector("caraway_plugins.sources.adbc.catalog:AdbcCatalog", _PARAMS)
ADBC_READER = DatabaseReader("caraway_plugins.sources.adbc.reader:AdbcReader", dialects=DIALECTS)
