"""The declarations of databases with a driver of ADBC; imports nothing of the driver manager."""

from caraway_core.loading.declarations import Connector, DatabaseReader
from caraway_plugins.sources.foreign_dialects import DIALECTS

ADBC = Connector(
    "caraway_plugins.sources.adbc.source:AdbcSource",
    frozenset(
        "adbc_driver adbc_driver_path adbc_entrypoint adbc_uri adbc_username adbc_password "
        "adbc_driver_options adbc_catalog adbc_schema adbc_dialect".split()
    ),
)
ADBC_READER = DatabaseReader("caraway_plugins.sources.adbc.reader:AdbcReader", dialects=DIALECTS)
