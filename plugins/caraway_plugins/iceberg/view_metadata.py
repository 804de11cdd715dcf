"""View metadata, version 1: the SQL of a view, and its columns."""

from collections.abc import Mapping

from caraway_plugins.iceberg.column_types import IcebergSchema


def document(
    uuid: str,
    location: str,
    schema: IcebergSchema,
    sql: str,
    dialect: str,
    namespace: str,
    properties: Mapping[str, str],
    timestamp_ms: int,
) -> dict[str, object]:
    """Return the metadata of a view as JSON."""
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": timestamp_ms,
        "summary": {"engine-name": dialect},
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
        "default-namespace": [namespace],
    }
    return {
        "view-uuid": uuid,
        "format-version": 1,
        "location": location,
        "current-version-id": 1,
        "versions": [version],
        "version-log": [{"version-id": 1, "timestamp-ms": timestamp_ms}],
        "schemas": [schema.document()],
        "properties": dict(properties),
    }
