"""The declarations of Iceberg and of Glue; imports nothing of them."""

from dataclasses import replace

from caraway_core.loading.declarations import CatalogConnector, Connector, DatabaseReader
from caraway_plugins.sources import declared

REST = frozenset(
    "iceberg_token iceberg_oauth2_credential iceberg_oauth2_token_url iceberg_oauth2_server_url "
    "iceberg_oauth2_scope".split()
)
"""Params of catalogs."""
POINTERS = declared.PG_LOGIN | frozenset(
    "iceberg_catalog_name sqlite_file iceberg_glue_region iceberg_glue_endpoint "
    "iceberg_glue_catalog_id iceberg_glue_access_key_id iceberg_glue_secret_access_key "
    "iceberg_glue_session_token iceberg_hive_endpoint".split()
)
"""Params of catalogs in databases, in Glue and in Hive."""
_STORES = frozenset().union(*declared.OF_STORE.values())
_S3 = frozenset(
    "iceberg_s3_endpoint iceberg_s3_region iceberg_s3_access_key_id iceberg_s3_secret_access_key "
    "iceberg_s3_session_token".split()
)
_CATALOG = REST | POINTERS | _STORES | _S3

ICEBERG = Connector(
    "caraway_plugins.sources.iceberg.source:IcebergSource",
    _CATALOG | {"iceberg_snapshot"},
)
ICEBERG_CATALOG = CatalogConnector(
    "caraway_plugins.sources.iceberg.catalog:IcebergCatalog", _CATALOG
)

ICEBERG_WRITER = DatabaseReader(
    "caraway_plugins.sources.iceberg.writing.writer:IcebergWriter",
    is_writable=True,
    is_replacing=True,
    is_creating=True,
)
GLUE_WRITER = replace(ICEBERG_WRITER, is_creating=False)

_GLUE = _STORES | frozenset(
    "glue_region glue_key glue_secret glue_session_token glue_endpoint glue_catalog_id".split()
)
GLUE = Connector(
    "caraway_plugins.sources.iceberg.named_glue:NamedGlueSource", _GLUE | {"iceberg_snapshot"}
)
GLUE_CATALOG = CatalogConnector(
    "caraway_plugins.sources.iceberg.named_glue:NamedGlueCatalog", _GLUE
)
