"""Datasets that are indexes: `from: opensearch:INDEX` and `from: elasticsearch:INDEX`."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_plugins.sources import key_ranges, params
from caraway_plugins.sources.documents.table import DocumentTable
from caraway_plugins.sources.opensearch import connecting, declared, filters, rules, values
from caraway_plugins.sources.opensearch.connecting import Product, SearchClient, SearchLogin
from caraway_plugins.sources.opensearch.mapping import IndexMapping, united
from caraway_plugins.sources.opensearch.reading import INDEX, SearchReads, shards_of
from caraway_plugins.sources.params import Params

_SAMPLED = 1_000
_WINDOW = 10_000
"""An answer has at most as many documents, if the settings of an index do not say otherwise."""
_PAGE_BYTES, _LEAST_PAGE, _MOST_PAGE = 4 * 2**20, 100, 5_000
_SIZED = 100
"""Documents that say how large the others are, where the columns are declared."""


class _SearchSource:
    product: Product
    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, splits=True)

    def resolve(self, request: SourceRequest) -> DocumentTable:
        known = params.checked(request.connector, request.params)
        login = connecting.login_of(self.product, request, known)
        names = _checked(request)
        with connecting.connected(login) as client:
            found = _described(client, login, names)
            sample = _sample(client, found, request, known)
        lists = values.lists_of(sample.documents)
        schema = pa.schema(request.declared) if request.declared else found.columns(names, lists)
        if not schema.names:
            raise DatasetError(
                "schema", f"{found.title} has no fields; declare them under `columns`"
            )
        return found.table(schema, sample, is_whole=not request.declared)

    def fingerprint(self, request: SourceRequest) -> str | None:
        table = self.resolve(request)
        parts = [(each.name, str(each.type)) for each in table.schema]
        # Other indexes may match a pattern now, and fields be searched in another way.
        assert isinstance(table.reads, SearchReads)
        shown = repr((parts, table.reads.indexes, table.reads.rules))
        return hashlib.sha256(shown.encode()).hexdigest()[:16]


class OpensearchSource(_SearchSource):
    """The documents of indexes of OpenSearch."""

    product: Product = "opensearch"
    declaration = declared.OPENSEARCH


class ElasticsearchSource(_SearchSource):
    """The documents of indexes of Elasticsearch."""

    product: Product = "elasticsearch"
    declaration = declared.ELASTICSEARCH


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some documents, and how many there are."""

    documents: Sequence[Mapping[str, object]]
    total: int

    @property
    def size_bytes(self) -> int:
        """The bytes of all documents, as far as the sample shows."""
        sizes = [len(json.dumps(each, default=str)) for each in self.documents]
        return self.total * sum(sizes) // max(len(sizes), 1)

    @property
    def page(self) -> int:
        """The number of documents that an answer of a usual size has."""
        usual = _PAGE_BYTES // max(self.size_bytes // max(self.total, 1), 1)
        return max(_LEAST_PAGE, min(usual, _MOST_PAGE))


@dataclass(frozen=True, slots=True)
class _Indexes:
    """Indexes as they describe themselves."""

    login: SearchLogin
    names: str
    described: Mapping[str, Any]

    @property
    def title(self) -> str:
        return SearchReads(self.login, self.names, ()).title

    def columns(self, names: str, lists: frozenset[str]) -> pa.Schema:
        """Return the columns of all."""
        schema = united([each.columns(lists) for each in self._mappings()])
        beside = [filters.ID, *([INDEX] if len(self.described) > 1 or "*" in names else [])]
        return pa.schema([*(pa.field(each, pa.string()) for each in beside), *schema])

    @property
    def window(self) -> int:
        """The most documents of an answer."""
        settings = (each["settings"]["index"] for each in self.described.values())
        return min(int(each.get("max_result_window", _WINDOW)) for each in settings)

    def table(self, schema: pa.Schema, sample: _Sample, *, is_whole: bool) -> DocumentTable:
        """Return the table; a large one has splits."""
        found = list(self.described.values())
        mappings = self._mappings()
        settings = [each["settings"]["index"] for each in found]
        ruled = [
            rules.rules_of(mapping, each) for mapping, each in zip(mappings, settings, strict=True)
        ]
        shards = [int(each["number_of_shards"]) for each in settings]
        # Only by its own name does an alias of one index keep its filter.
        asked = list(self.described) if len(found) > 1 else [self.names]
        reads = SearchReads(
            self.login,
            self.names,
            tuple(zip(asked, shards, strict=True)),
            rules.common(ruled),
            frozenset().union(*(each.numbered for each in mappings)),
            min(sample.page, self.window),
            is_whole,
        )
        table = DocumentTable(schema, reads, frozenset(), 0, sample.size_bytes, sample.total)
        if sample.size_bytes < 2 * key_ranges.SPLIT_BYTES or sum(shards) < 2:
            return table
        return replace(table, splits=tuple(shards_of(reads.indexes, sample.size_bytes)))

    def _mappings(self) -> list[IndexMapping]:
        return [_mapping(each["mappings"], self.title) for each in self.described.values()]


def _checked(request: SourceRequest) -> str:
    """Return the names of a path: indexes, aliases and patterns.

    Raises:
        DatasetError: there are none, or a name is one of an API.
    """
    parts = request.path.split(",")
    if any(not each.strip(".") or each.startswith("_") for each in parts):
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': write an index, an alias or a pattern, as "
            f"{request.connector}:orders or {request.connector}:logs-*",
        )
    return request.path


def _described(client: SearchClient, login: SearchLogin, names: str) -> _Indexes:
    title = SearchReads(login, names, ()).title
    try:
        found = client.describe(names)
    except DatasetError as exc:
        if exc.type != "not_found":
            raise
        found = {}
    if not found:
        raise DatasetError(
            "not_found", f"{title} does not exist; check its name and {login.product}_endpoint"
        )
    if len(found) > 1:
        for index, each in found.items():
            _refuse_filtered(index, each.get("aliases") or {}, names, title)
    return _Indexes(login, names, dict(sorted(found.items())))


def _refuse_filtered(index: str, aliases: Mapping[str, Any], names: str, title: str) -> None:
    """Refuse an alias with a filter among several indexes, which are read by their own names."""
    parts = names.split(",")
    if any(fnmatchcase(index, part) for part in parts):
        return
    for alias, each in aliases.items():
        if "filter" in each and any(fnmatchcase(alias, part) for part in parts):
            raise DatasetError(
                "unsupported",
                f"{title} has several indexes behind '{alias}', an alias with a filter; read each "
                "by an alias of its own",
            )


def _sample(
    client: SearchClient, found: _Indexes, request: SourceRequest, known: Params
) -> _Sample:
    size = _SIZED if request.declared else known.count("schema_infer_max_records") or _SAMPLED
    body = {"size": min(size, found.window), "track_total_hits": True, "sort": ["_doc"]}
    hits = client.search(found.names, body)["hits"]
    return _Sample([each.get("_source") or {} for each in hits["hits"]], hits["total"]["value"])


def _mapping(mappings: Mapping[str, Any], title: str) -> IndexMapping:
    kept = mappings.get("_source") or {}
    if kept.get("enabled", True) is not True or kept.get("includes"):
        raise DatasetError(
            "unsupported",
            f"{title} does not keep its documents: its mapping limits `_source`; index it again "
            "with the whole source",
        )
    return IndexMapping(mappings.get("properties") or {}, tuple(kept.get("excludes") or ()))
