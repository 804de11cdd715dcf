"""Clients of object stores, and words for what they refuse."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from caraway_core.errors import DatasetErrorType
from caraway_core.tables import StoreSpec

if TYPE_CHECKING:  # obstore's types exist for the type checker only
    from obstore.store import ClientConfig, RetryConfig

Client = S3Store | GCSStore | AzureStore

_RETRIES: "RetryConfig" = {"max_retries": 2, "retry_timeout": timedelta(seconds=30)}
_CLIENTS = {"s3": S3Store, "gs": GCSStore, "abfss": AzureStore}
_STATUS = re.compile(r"\b([45]\d\d) [A-Z][A-Za-z ]+")
_BOOLEANS = ("skip_signature", "use_emulator")
_DENIED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError)
_MISSING = (exceptions.NotFoundError, FileNotFoundError)
# How S3, Google and Azure say that the bucket itself is missing.
_NO_BUCKET = re.compile("NoSuchBucket|bucket does not exist|ContainerNotFound", re.IGNORECASE)

# How S3 servers, Google and Azure say that a disk or a quota is used up.
_FULL = re.compile(r"\b507 |InsufficientStorage|StorageFull|QuotaExceeded|quotaExceeded")


@dataclass(frozen=True, slots=True)
class StoreTrouble:
    """Why a store did not do what it was asked for, without secrets."""

    type: DatasetErrorType
    message: str


def connect(spec: StoreSpec, timeout_s: float) -> Client:
    """Make a client whose requests end in bounded time; nothing is sent yet.

    Raises:
        ValueError: the options make no client.
    """
    options: dict[str, object] = {
        name: text == "true" if name in _BOOLEANS else text
        for name, text in spec.options.items()
        if name != "allow_http"
    }
    client: ClientConfig = {
        "timeout": timedelta(seconds=timeout_s),
        "connect_timeout": timedelta(seconds=min(timeout_s, 10)),
        "allow_http": spec.options.get("allow_http") == "true" or spec.kind == "gs",
    }
    make = _CLIENTS[spec.kind]
    try:
        # The three constructors take different options; `options` fits the one of its kind.
        return make(  # type: ignore[no-any-return] # untyped
            spec.bucket, client_options=client, retry_config=_RETRIES, **options
        )
    except Exception as exc:
        raise ValueError(f"the params of '{title(spec, '')}' make no {spec.kind} client") from exc


def title(spec: StoreSpec, path: str) -> str:
    """Return a path of the store as a user would write it."""
    return f"{spec.kind}://{spec.bucket}/{path}"


def is_missing_object(exc: Exception) -> bool:
    """Tell whether an object is missing, and not its bucket."""
    return isinstance(exc, _MISSING) and not _NO_BUCKET.search(str(exc))


def is_full(exc: Exception) -> bool:
    """Tell whether a store has no room."""
    return _FULL.search(str(exc)) is not None


def trouble(where: str, exc: Exception) -> StoreTrouble:
    """Word an exception of the client: its own texts may hold signed URLs."""
    text = str(exc)
    status = _STATUS.search(text)
    said = f" ({status.group().strip()})" if status else ""
    if isinstance(exc, _DENIED) or (status and status[1] in ("401", "403")):
        return StoreTrouble("auth", f"'{where}' is refused{said}; check the credentials")
    if isinstance(exc, _MISSING) or _NO_BUCKET.search(text):
        return StoreTrouble(
            "not_found", f"'{where}' is not there{said}; check the bucket and the path"
        )
    return StoreTrouble(
        "unavailable", f"'{where}' cannot be reached{said}; check endpoint, region and network"
    )
