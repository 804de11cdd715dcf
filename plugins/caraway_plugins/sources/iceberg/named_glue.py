"""Tables of AWS Glue by the names that manifests of others have: `glue:DATABASE.TABLE`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources import params
from caraway_plugins.sources.iceberg.catalog import IcebergCatalog
from caraway_plugins.sources.iceberg.pointers import PointerPath
from caraway_plugins.sources.iceberg.source import IcebergSource

_KIND = "glue"
_ICEBERG = "iceberg"
_NAMES = {
    "glue_region": "region",
    "glue_key": "access_key_id",
    "glue_secret": "secret_access_key",
    "glue_session_token": "session_token",
    "glue_endpoint": "endpoint",
    "glue_catalog_id": "catalog_id",
}
_OF_BUCKETS = {
    "glue_region": "s3_region",
    "glue_key": "s3_key",
    "glue_secret": "s3_secret",
    "glue_session_token": "s3_session_token",
}
"""The params of buckets that have these values unless the manifest gives them others."""
_BUCKET_KEYS = ("s3_key", "s3_secret", "s3_session_token")


class NamedGlueSource:
    """An Iceberg table of Glue, as `iceberg:glue://DATABASE/TABLE` reads it."""

    capabilities = IcebergSource.capabilities

    def resolve(self, request: SourceRequest) -> TableSpec:
        with _renaming():
            return IcebergSource().resolve(_asked(request))

    def fingerprint(self, request: SourceRequest) -> str | None:
        with _renaming():
            return IcebergSource().fingerprint(_asked(request))


class NamedGlueCatalog:
    """The Iceberg tables of Glue, or of one of its databases."""

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        with _renaming():
            yield from IcebergCatalog().tables(_of_catalog(request))

    def fingerprint(self, request: CatalogRequest) -> str | None:
        return None

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        with _renaming():
            return IcebergCatalog().resolve(_of_catalog(request), table)


def _asked(request: SourceRequest) -> SourceRequest:
    database, _, table = request.path.partition(".")
    if not database or not table:
        raise DatasetError(
            "invalid", f"`from: glue:{request.path}` names no table; write glue:DATABASE.TABLE"
        )
    path = PointerPath(_KIND, (database,), table).text
    values = _translated(params.checked(_KIND, request.params).values)
    return replace(request, connector=_ICEBERG, path=path, params=values)


def _of_catalog(request: CatalogRequest) -> CatalogRequest:
    path = PointerPath(_KIND, (request.path,) if request.path else ()).text
    values = _translated(params.checked(_KIND, request.params).values)
    return replace(request, connector=_ICEBERG, path=path, params=values)


def _translated(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the params of Iceberg; the login of Glue is that of the buckets, too."""
    values = {_of_glue(name): value for name, value in given.items()}
    for name, of_bucket in _OF_BUCKETS.items():
        has_own = any(given.get(each) for each in _BUCKET_KEYS) and of_bucket in _BUCKET_KEYS
        if given.get(name) and not given.get(of_bucket) and not has_own:
            values[of_bucket] = given[name]
    if not any(values.get(each) for each in _BUCKET_KEYS):
        values.setdefault("s3_auth", "iam_role")
    return values


def _of_glue(name: str) -> str:
    return f"iceberg_glue_{_NAMES[name]}" if name in _NAMES else name


@contextmanager
def _renaming() -> Iterator[None]:
    """Have errors name the params as the manifest does."""
    try:
        yield
    except DatasetError as exc:
        message = exc.message
        for name in _NAMES:
            message = message.replace(_of_glue(name), name)
        raise DatasetError(exc.type, message) from exc
