"""Catalogs of Iceberg in AWS Glue, whose databases are namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from caraway_core.errors import DatasetError, DatasetErrorType
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources import params
from caraway_plugins.sources.iceberg import locations
from caraway_plugins.sources.iceberg.pointers import ListedPointer, PointerPath

_ATTEMPTS = 6
_TIMEOUT_S = 30.0
_LOCATION, _PREVIOUS = "metadata_location", "previous_metadata_location"
_INPUTS = frozenset(
    {"Name", "Description", "Owner", "LastAccessTime", "LastAnalyzedTime", "Retention",
     "StorageDescriptor", "PartitionKeys", "ViewOriginalText", "ViewExpandedText", "TableType",
     "Parameters", "TargetTable"}
)  # fmt: skip
"""The parts of the description of a table that an update takes."""
_REGION, _KEY, _SECRET, _TOKEN = (
    f"iceberg_glue_{each}"
    for each in ("region", "access_key_id", "secret_access_key", "session_token")
)
_TYPES: Mapping[str, DatasetErrorType] = {
    "EntityNotFoundException": "not_found",
    "InvalidInputException": "invalid",
    "ValidationException": "invalid",
    **dict.fromkeys(
        (
            "AccessDeniedException", "ExpiredTokenException", "IncompleteSignature",
            "InvalidClientTokenId", "InvalidSignatureException", "MissingAuthenticationToken",
            "UnrecognizedClientException",
        ),
        "auth",
    ),
}  # fmt: skip
_REMEDIES: Mapping[DatasetErrorType, str] = {
    "not_found": f"check its name and {_REGION}",
    "invalid": "check its name",
    "auth": f"check {_KEY}, {_SECRET} and the rights of the user",
    "unavailable": "it is tried again",
}


class GlueCatalog:
    """The tables of a catalog that are of Iceberg; Glue has others, too."""

    def tables(self, request: SourceRequest, path: PointerPath) -> Iterator[ListedPointer]:
        given = _catalog(request)
        title = f"namespace '{'.'.join(path.namespace)}'" if path.namespace else "the catalog"
        with _answering(request, title) as client:
            names = (
                [".".join(path.namespace)] if path.namespace else list(_databases(client, given))
            )
            for name in names:
                pages = client.get_paginator("get_tables").paginate(DatabaseName=name, **given)
                for each in (table for page in pages for table in page["TableList"]):
                    if location := _location(each):
                        yield ListedPointer(tuple(name.split(".")), str(each["Name"]), location)

    def location(self, request: SourceRequest, path: PointerPath) -> str:
        with _answering(request, path.title) as client:
            table = _table(client, request, path)
        location = _location(table)
        if location is None:
            raise DatasetError(
                "invalid", f"{path.title} of Glue is not an Iceberg table{_advice(table)}"
            )
        return location

    def move(self, request: SourceRequest, path: PointerPath, before: str, after: str) -> bool:
        with _answering(request, path.title, "written") as client:
            table = _table(client, request, path)
            if _location(table) != before:
                return False
            given = {key: value for key, value in table.items() if key in _INPUTS}
            moved = {_LOCATION: after, _PREVIOUS: before}
            given["Parameters"] = {**table.get("Parameters", {}), **moved}
            version = {"VersionId": table["VersionId"]} if table.get("VersionId") else {}
            try:
                client.update_table(
                    DatabaseName=".".join(path.namespace),
                    TableInput=given,
                    SkipArchive=True,
                    **version,
                    **_catalog(request),
                )
            except client.exceptions.ConcurrentModificationException:
                return False
        return True


def _table(client: Any, request: SourceRequest, path: PointerPath) -> Mapping[str, Any]:
    database = ".".join(path.namespace)
    answer = client.get_table(DatabaseName=database, Name=path.table, **_catalog(request))
    found: Mapping[str, object] = answer["Table"]
    return found


def _databases(client: Any, given: Mapping[str, str]) -> Iterator[str]:
    for page in client.get_paginator("get_databases").paginate(**given):
        yield from (str(each["Name"]) for each in page["DatabaseList"])


def _location(table: Mapping[str, Any]) -> str | None:
    found = {key.lower(): value for key, value in (table.get("Parameters") or {}).items()}
    is_iceberg = str(found.get("table_type", "")).upper() == "ICEBERG"
    return str(found[_LOCATION]) if is_iceberg and found.get(_LOCATION) else None


def _advice(table: Mapping[str, Any]) -> str:
    """Return how a table of plain files is read, if Glue says where they are."""
    place = str((table.get("StorageDescriptor") or {}).get("Location") or "")
    return f"; read its files with `from: {place}`" if place.startswith("s3://") else ""


def _catalog(request: SourceRequest) -> Mapping[str, str]:
    known = params.checked(request.connector, request.params)
    id_ = known.text("iceberg_glue_catalog_id")
    return {"CatalogId": id_} if id_ else {}


@contextmanager
def _answering(request: SourceRequest, title: str, done: str = "read") -> Iterator[Any]:
    """Yield a client of Glue, and translate its errors.

    Raises:
        DatasetError: Glue refuses a request, or cannot be reached.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as exc:
        raise DatasetError(
            "unsupported",
            "a catalog of Glue needs the package 'boto3', which is not installed; install it "
            "with: pip install 'caraway[aws]'",
        ) from exc
    known = params.checked(request.connector, request.params)
    # Without keys of Glue, those of the buckets are meant; without these, those of the machine.
    stores = locations.store_values(request.params, {})
    timeout_s = known.seconds("client_timeout", _TIMEOUT_S)
    key, secret = known.text(_KEY), known.text(_SECRET)
    if (key is None) != (secret is None):
        raise DatasetError("invalid", f"params has one of {_KEY} and {_SECRET}; set both")
    token = known.text(_TOKEN)
    if key is None:
        key, secret = stores.text("s3_key"), stores.text("s3_secret")
        token = stores.text("s3_session_token")
    session: Any = boto3.session.Session()
    try:
        client = session.client(
            "glue",
            region_name=known.text(_REGION) or stores.text("s3_region"),
            endpoint_url=known.text("iceberg_glue_endpoint"),
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
            config=Config(
                connect_timeout=min(timeout_s, 10.0),
                read_timeout=timeout_s,
                retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
            ),
        )
    except (BotoCoreError, ValueError) as exc:
        raise DatasetError(
            "invalid", f"Glue cannot be addressed; set params.{_REGION}, and check its endpoint"
        ) from exc
    try:
        yield client
    except ClientError as exc:
        code = str(exc.response.get("Error", {}).get("Code", ""))
        kind = _TYPES.get(code, "unavailable")
        said = f"cannot be {done}: Glue answers {code}"
        reason = "does not exist" if kind == "not_found" else said
        raise DatasetError(kind, f"{title} {reason}; {_REMEDIES[kind]}") from exc
    except BotoCoreError as exc:
        found = type(exc).__name__
        kind = "auth" if "Credentials" in found else "unavailable"
        kind = "invalid" if found == "ParamValidationError" else kind
        raise DatasetError(kind, f"{title} cannot be {done} ({found}); {_REMEDIES[kind]}") from exc
    finally:
        client.close()
