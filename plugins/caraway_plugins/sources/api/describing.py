"""The columns of an API: those of its first rows, and those that the manifest declares."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources import json_shape, schemas
from caraway_plugins.sources.api import table
from caraway_plugins.sources.api.sending import ApiClient, ApiLimits
from caraway_plugins.sources.api.table import ApiPages, ApiTable


def described(
    request: SourceRequest, pages: ApiPages, limits: ApiLimits, most_records: int | None
) -> ApiTable:
    """Request the first page of an API, and return its table.

    Its columns are those of the first page, or of as many pages as have `most_records` rows.

    Raises:
        DatasetError: the API cannot be read, or its rows have no columns.
    """
    columns = _columns(pages, limits, most_records)
    schema = schemas.overridden(schemas.finished(columns), request.declared)
    if not schema.names:
        raise DatasetError(
            "schema",
            f"'{pages.title}' has no rows to take the columns from; declare them under `columns`",
        )
    texts = {each.name for each in request.declared if pa.types.is_string(each.type)}
    return ApiTable(schema, pages, limits, frozenset(texts))


def fingerprint(found: ApiTable) -> str:
    """Return a text that is another one for other columns."""
    parts = [(each.name, str(each.type)) for each in found.schema]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _columns(pages: ApiPages, limits: ApiLimits, most_records: int | None) -> pa.Schema:
    client = ApiClient(replace(limits, is_exact=False))
    try:
        sample: list[Sequence[Mapping[str, object]]] = []
        for rows in table.each_page(client, pages, RowRequest(())):
            sample.append(rows)
            if most_records is None or sum(map(len, sample)) >= most_records:
                break
        return json_shape.columns_of(chain.from_iterable(sample), pages.title)
    finally:
        client.close()
