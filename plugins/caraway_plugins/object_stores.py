"""Creates clients of object stores, and maps their errors."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import obstore
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
# The error texts of S3, Google and Azure for a missing bucket.
_NO_BUCKET = re.compile("NoSuchBucket|bucket does not exist|ContainerNotFound", re.IGNORECASE)

# The error texts of S3 servers, Google and Azure for a full disk or an exceeded quota.
_FULL = re.compile(r"\b507 |InsufficientStorage|StorageFull|QuotaExceeded|quotaExceeded")


@dataclass(frozen=True, slots=True)
class StoreTrouble:
    """The reason why a store failed, without secrets."""

    type: DatasetErrorType
    message: str


def connect(spec: StoreSpec, timeout_s: float) -> Client:
    """Create a client with request timeouts; nothing is sent yet.

    Raises:
        ValueError: the options are invalid.
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
        raise ValueError(
            f"the params of '{title(spec, '')}' are not valid for {spec.kind}"
        ) from exc


def title(spec: StoreSpec, path: str) -> str:
    """Return a path in the store as a URL."""
    return f"{spec.kind}://{spec.bucket}/{path}"


def public_url(spec: StoreSpec, path: str) -> str:
    """Return the URL of a path in the store as systems without our params need it."""
    account = spec.options.get("account_name")
    if spec.kind == "abfss" and account:
        return f"abfss://{spec.bucket}@{account}.dfs.core.windows.net/{path}"
    return title(spec, path)


def signed_url(spec: StoreSpec, method: Literal["GET", "HEAD"], path: str, seconds: float) -> str:
    """Return the URL of an object, signed for one method and some time. This may block.

    Raises:
        ValueError: the store has nothing to sign with.
    """
    if spec.kind != "s3" or spec.options.get("skip_signature") == "true":
        raise ValueError(f"'{title(spec, path)}' needs no signature, or takes none")
    try:
        found: str = obstore.sign(connect(spec, seconds), method, path, timedelta(seconds=seconds))
    except Exception as exc:
        raise ValueError(f"'{title(spec, path)}' cannot be signed for") from exc
    return found


def is_missing_object(exc: Exception) -> bool:
    """Return whether an object is missing although its bucket exists."""
    return isinstance(exc, _MISSING) and not _NO_BUCKET.search(str(exc))


def is_full(exc: Exception) -> bool:
    """Return whether the error says that the store is full."""
    return _FULL.search(str(exc)) is not None


def trouble(where: str, exc: Exception) -> StoreTrouble:
    """Describe an exception of the client without its own text, which may contain signed URLs."""
    text = str(exc)
    status = _STATUS.search(text)
    said = f" ({status.group().strip()})" if status else ""
    if isinstance(exc, _DENIED) or (status and status[1] in ("401", "403")):
        return StoreTrouble("auth", f"'{where}': access is denied{said}; check the credentials")
    if isinstance(exc, _MISSING) or _NO_BUCKET.search(text):
        return StoreTrouble(
            "not_found", f"'{where}' does not exist{said}; check the bucket and the path"
        )
    return StoreTrouble(
        "unavailable", f"'{where}' cannot be reached{said}; check endpoint, region and network"
    )
