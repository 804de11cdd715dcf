"""Declarations of the sources of this package; imports nothing that a source needs."""

from collections.abc import Mapping

from caraway_core.loading.declarations import CatalogConnector, Connector, DatabaseReader
from caraway_plugins.sources import delta_dialect
from caraway_plugins.sources.api import declared as api
from caraway_plugins.sources.postgres import dialect as postgres

_DIALECT = (
    "has_header",
    "delimiter",
    "quote",
    "escape",
    "comment",
    "null_regex",
    "decimal_separator",
    "newlines_in_values",
    "schema_infer_max_records",
)
_FORMAT = frozenset(
    {
        "file_format",
        "file_extension",
        "file_compression_type",
        "hive_partitioning_enabled",
        "normalize_names",
        "schema_infer_max_records",
        "json_format",
    }
    | {f"{prefix}_{name}" for prefix in ("csv", "tsv") for name in _DIALECT}
)
"""Params of every source that reads files."""

OF_STORE: Mapping[str, frozenset[str]] = {
    "s3": frozenset(
        "s3_region s3_endpoint s3_key s3_secret s3_session_token allow_http s3_auth "
        "client_timeout".split()
    ),
    "gs": frozenset(
        "google_service_account google_service_account_path gcs_service_account_path "
        "gcs_skip_signature client_timeout".split()
    ),
    "abfss": frozenset(
        "abfs_account azure_storage_account_name abfs_access_key azure_storage_account_key "
        "abfs_bearer_token abfs_client_id abfs_client_secret abfs_tenant_id abfs_sas_string "
        "abfs_endpoint abfs_use_emulator abfs_allow_http allow_http abfs_skip_signature "
        "client_timeout".split()
    ),
}
"""Params of an object store, for datasets and for the places of results and snapshots."""

_FILES = "caraway_plugins.sources.files:"
_LISTED = _FORMAT | {"metadata_columns"}
FILE = Connector(f"{_FILES}LocalFiles", _LISTED, is_local=True, poll_s=1.0)
S3 = Connector(f"{_FILES}ObjectFiles", _LISTED | OF_STORE["s3"])
GS = Connector(f"{_FILES}ObjectFiles", _LISTED | OF_STORE["gs"])
ABFSS = Connector(f"{_FILES}ObjectFiles", _LISTED | OF_STORE["abfss"])
_SERVERS = "caraway_plugins.sources.file_servers."
FTP = Connector(
    f"{_SERVERS}ftp:FtpFiles",
    _LISTED
    | frozenset("ftp_port ftp_user ftp_pass ftp_tls ftp_tls_root_certs client_timeout".split()),
)
SFTP = Connector(
    f"{_SERVERS}sftp:SftpFiles",
    _LISTED
    | frozenset(
        "sftp_port sftp_user sftp_pass sftp_private_key sftp_private_key_passphrase "
        "sftp_host_key sftp_known_hosts client_timeout".split()
    ),
)
WEB = Connector(
    "caraway_plugins.sources.web:WebFile",
    _FORMAT
    | api.PAGES
    | api.LIMITS
    | {"http_username", "http_password", "http_auth_token", "http_headers", "http_port"},
    hidden_params=api.DYNAMIC,
)
MEMORY = Connector("caraway_plugins.sources.memory:MemorySource", frozenset({"data"}))
LOCALPOD = Connector("caraway_plugins.sources.localpod:LocalDataset", frozenset(), is_copying=True)
DELTA = Connector(
    "caraway_plugins.sources.delta:DeltaSource", frozenset().union(*OF_STORE.values())
)
DELTA_WRITER = DatabaseReader(
    "caraway_plugins.sources.delta_writer:DeltaWriter",
    dialect=delta_dialect.DIALECT,
    is_writable=True,
    is_changeable=True,
    is_merging=True,
)
PG_LOGIN = frozenset(
    "pg_host pg_port pg_db pg_user pg_pass pg_sslmode pg_sslrootcert pg_connection_string".split()
)
POSTGRES = Connector(
    "caraway_plugins.sources.postgres.source:PostgresSource",
    PG_LOGIN | {"pg_replication_slot", "pg_publication"},
    modes=("full", "append", "changes", "disabled"),
)
POSTGRES_CATALOG = CatalogConnector(
    "caraway_plugins.sources.postgres.tables:PostgresCatalog", PG_LOGIN
)
POSTGRES_READER = DatabaseReader(
    "caraway_plugins.sources.postgres.reader:PostgresReader",
    dialect=postgres.POSTGRES,
    is_writable=True,
    is_changeable=True,
    is_merging=True,
    is_creating=True,
)
