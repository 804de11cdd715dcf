"""Datasets that are a collection of MongoDB: `from: mongodb:COLLECTION`."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources import params
from caraway_plugins.sources.api import limiting, pointers
from caraway_plugins.sources.documents import shape
from caraway_plugins.sources.documents.table import Documents, DocumentTable
from caraway_plugins.sources.mongodb import connecting, declared, filters, splitting, values
from caraway_plugins.sources.mongodb.connecting import MongoLogin
from caraway_plugins.sources.mongodb.filters import MongoColumns
from caraway_plugins.sources.mongodb.splitting import IdSplit

_SAMPLED = 1_000
_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class MongoReads:
    """Reads a collection."""

    login: MongoLogin
    collection: str
    is_collated: bool = False

    @property
    def title(self) -> str:
        return f"mongodb collection '{self.collection}'"

    def pages(
        self, table: DocumentTable, request: RowRequest, stopped: threading.Event
    ) -> Iterator[Documents]:
        columns = MongoColumns(table.schema, table.texts, self.is_collated)
        conditions = [filters.filter_of(columns, table.own_filters(request))]
        parts = [each for each in request.splits if isinstance(each, IdSplit)]
        if parts:
            conditions.append({"$or": [each.condition() for each in parts]})
        with connecting.connected(self.login, self.title) as database:
            cursor = database[self.collection].find(
                conditions[0] if len(conditions) == 1 else {"$and": conditions},
                filters.projection_of(table.fields(request)),
                # A limit counts rows that pass all filters. Zero stands for none.
                limit=0 if request.filters else request.limit or 0,
                batch_size=_PAGE,
            )
            while not stopped.is_set():
                page = [values.values_of(each) for each in islice(cursor, _PAGE)]
                if not page:
                    return
                yield page


class MongodbSource:
    """The documents of a collection."""

    declaration = declared.MONGODB
    capabilities = SourceCapabilities(
        projection=True, filters=True, limit=True, splits=True, changes=True
    )

    def resolve(self, request: SourceRequest) -> DocumentTable:
        known = params.checked(request.connector, request.params)
        if not request.path:
            raise DatasetError(
                "invalid", f"dataset '{request.name}': write the collection, as mongodb:orders"
            )
        nesting = "mongodb_unnest_depth" if known.text("mongodb_unnest_depth") else "unnest_depth"
        depth = limiting.number(known, nesting, 0)
        most = known.count("mongodb_num_docs_to_infer_schema", "schema_infer_max_records")
        login, name = connecting.login_of(known), request.path
        title = MongoReads(login, name).title
        with connecting.connected(login, title) as database:
            options = _options(database, name, title)
            reads = MongoReads(login, name, "collation" in options)
            is_view = "viewOn" in options
            count = None if is_view else database[name].estimated_document_count()
            size, parts = (
                (0, ())
                if is_view
                else splitting.splits(database[name], is_collated=reads.is_collated)
            )
            if request.declared:
                columns = shape.declared_shape(request.declared)
            else:
                sample = database[name].find(limit=most or _SAMPLED)
                rows = (pointers.unnested(values.values_of(each), depth, title) for each in sample)
                columns = shape.shape_of(rows, title)
        if not columns.schema.names:
            raise DatasetError(
                "schema",
                f"{title} has no documents to take the columns from; declare them under `columns`",
            )
        return DocumentTable(columns.schema, reads, columns.texts, depth, size, count, parts)

    def fingerprint(self, request: SourceRequest) -> str | None:
        parts = [(each.name, str(each.type)) for each in self.resolve(request).schema]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _options(database: Any, name: str, title: str) -> dict[str, object]:
    """Return the options of a collection.

    Raises:
        DatasetError: the database has no such collection.
    """
    for each in database.list_collections(filter={"name": name}):
        if each["name"] == name:
            return dict(each.get("options") or {})
    raise DatasetError(
        "not_found",
        f"{title} does not exist in database '{database.name}'; check its name and mongodb_db",
    )
