"""Datasets whose rows are in the manifest, and are kept in memory."""

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.manifest.texts.names import MEMORY_PATH
from caraway_core.protocols.memories import MEMORY_SCHEMA
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import MemoryTable
from caraway_plugins.sources import json_shape, params, schemas
from caraway_plugins.sources.samples import FileSample


class MemorySource:
    """A table with the declared columns; `params.data` has its initial rows as JSON.

    The path `store` is a table of memories, which has columns of its own.
    """

    capabilities = SourceCapabilities(projection=True, limit=True, writes=True)

    def resolve(self, request: SourceRequest) -> MemoryTable:
        values = params.checked("memory", request.params)
        text, title = values.text("data") or "", f"params.data of '{request.name}'"
        shape = json_shape.infer(FileSample(text, is_whole=True), "auto", None, title)
        is_for_memories = request.path == MEMORY_PATH
        found = MEMORY_SCHEMA if is_for_memories else schemas.finished(shape.schema)
        schema = schemas.overridden(found, request.declared)
        if not schema.names:
            raise DatasetError(
                "schema", f"'{request.name}' has no columns; declare them under `columns`"
            )
        return MemoryTable(schema, _rows(json_shape.rows(text, title), schema, title))

    def fingerprint(self, request: SourceRequest) -> str | None:
        return None


def _rows(records: list[dict[str, object]], schema: pa.Schema, title: str) -> pa.Table:
    columns = [
        _column([record.get(field.name) for record in records], field, title) for field in schema
    ]
    return pa.table(columns, schema=schema)


def _column(values: list[object], field: pa.Field, title: str) -> pa.Array:
    try:
        try:
            return pa.array(values, field.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            # JSON has no dates and no decimals; they are strings and numbers.
            return pa.array(values).cast(field.type)
    except pa.ArrowException as exc:
        raise DatasetError(
            "schema", f"{title} does not fit column '{field.name}' of type {field.type}"
        ) from exc
