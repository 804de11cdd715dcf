"""Params of each connector and provider: one table for plug-ins and the checks of manifests."""

from collections.abc import Mapping

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
FORMAT = frozenset(
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
"""Params of every connector that reads files."""

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

SCHEMA_REGISTRY = frozenset(
    {"schema_registry_url", "schema_registry_username", "schema_registry_password"}
)
_WEB = frozenset(
    {"http_username", "http_password", "http_headers", "http_port", "client_timeout"} | FORMAT
)

OF_CONNECTOR: Mapping[str, frozenset[str]] = {
    "file": FORMAT,
    **{name: FORMAT | params for name, params in OF_STORE.items()},
    "http": _WEB,
    "https": _WEB,
    "memory": frozenset({"data"}),
    "delta": frozenset().union(*OF_STORE.values()),
    "cdc": SCHEMA_REGISTRY | {"avro_schema"},
    "debezium": SCHEMA_REGISTRY
    | frozenset(
        "debezium_transport debezium_message_format avro_schema kafka_bootstrap_servers "
        "kafka_security_protocol kafka_sasl_mechanism kafka_sasl_username kafka_sasl_password "
        "kafka_ssl_ca_location kafka_ssl_certificate_location kafka_ssl_key_location "
        "kafka_enable_ssl_certificate_verification kafka_ssl_endpoint_identification_algorithm "
        "kafka_consumer_group_id kafka_offset_reset".split()
    ),
    "postgres": frozenset(
        "pg_host pg_port pg_db pg_user pg_pass pg_sslmode pg_sslrootcert pg_connection_string "
        "pg_replication_slot pg_publication".split()
    ),
}

_REMOTE = frozenset(
    {"client_timeout", "dimensions", "max_batch_size", "max_concurrency", "endpoint"}
)
_ONNX = frozenset({"max_tokens", "pooling"})
OF_EMBEDDER: Mapping[str, frozenset[str]] = {
    "builtin": frozenset(),
    "file": _ONNX,
    "huggingface": _ONNX | {"client_timeout", "endpoint", "hf_token", "revision"},
    "openai": _REMOTE | {"openai_api_key", "openai_org_id", "openai_project_id"},
    "azure": _REMOTE | {"azure_api_key", "azure_api_version", "azure_entra_token"},
    "bedrock": _REMOTE
    | {"aws_region", "aws_access_key_id", "aws_secret_access_key", "aws_session_token"},
    "google": _REMOTE | {"google_api_key"},
}
"""Params of the providers of embedding models."""

OF_RERANKER: Mapping[str, frozenset[str]] = {
    "builtin": frozenset(),
    "file": frozenset({"max_tokens"}),
    "huggingface": frozenset({"max_tokens", "client_timeout", "endpoint", "hf_token", "revision"}),
    "cohere": frozenset({"client_timeout", "endpoint", "cohere_api_key"}),
    "model": frozenset(),
}
"""Params of the providers of rerankers."""
