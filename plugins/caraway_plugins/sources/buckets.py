"""Files in object stores."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from caraway_core.errors import DatasetError
from caraway_core.tables import StoreSpec
from caraway_plugins.sources.storage import FoundFile

if TYPE_CHECKING:  # obstore's types exist for the type checker only
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, RetryConfig

_RETRIES: "RetryConfig" = {"max_retries": 2, "retry_timeout": timedelta(seconds=30)}
_CLIENTS = {"s3": S3Store, "gs": GCSStore, "abfss": AzureStore}
_STATUS = re.compile(r"\b([45]\d\d) [A-Z][A-Za-z ]+")
_BOOLEANS = ("skip_signature", "use_emulator")


class Bucket:
    """The Storage of one bucket or container."""

    def __init__(self, store: StoreSpec, timeout_s: float) -> None:
        self.store: StoreSpec | None = store
        self._spec = store
        self._client = self._connect(store, timeout_s)

    def listing(self, folder: str) -> Iterator[FoundFile]:
        try:
            for chunk in obstore.list(self._client, prefix=folder.rstrip("/") or None):
                # Prefixes match whole path segments; the folder itself may be a key of size 0.
                yield from (_found(each) for each in chunk if each["path"].startswith(folder))
        except Exception as exc:
            raise self._worded(folder, exc) from exc

    def find(self, path: str) -> FoundFile | None:
        try:
            return _found(obstore.head(self._client, path))
        except (exceptions.NotFoundError, FileNotFoundError):
            return None
        except Exception as exc:
            raise self._worded(path, exc) from exc

    def read(self, path: str, start: int, end: int) -> bytes:
        try:
            return bytes(obstore.get_range(self._client, path, start=start, end=end))
        except Exception as exc:
            raise self._worded(path, exc) from exc

    def location(self, path: str) -> str:
        return f"{self._spec.kind}://{self._spec.alias}/{path}"

    def title(self, path: str) -> str:
        return f"{self._spec.kind}://{self._spec.bucket}/{path}"

    def _connect(self, spec: StoreSpec, timeout_s: float) -> S3Store | GCSStore | AzureStore:
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
            raise DatasetError(
                "invalid", f"the params of '{self.title('')}' make no {spec.kind} client"
            ) from exc

    def _worded(self, path: str, exc: Exception) -> DatasetError:
        # obstore's own texts may hold signed URLs: only the status is passed on.
        where, text = self.title(path), str(exc)
        status = _STATUS.search(text)
        said = f" ({status.group().strip()})" if status else ""
        denied = exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError
        if isinstance(exc, denied) or (status and status[1] in ("401", "403")):
            return DatasetError("auth", f"'{where}' is refused{said}; check the credentials")
        if isinstance(exc, exceptions.NotFoundError | FileNotFoundError) or "NoSuchBucket" in text:
            return DatasetError(
                "not_found", f"'{where}' is not there{said}; check the bucket and the path"
            )
        return DatasetError(
            "unavailable", f"'{where}' cannot be reached{said}; check endpoint, region and network"
        )


def _found(meta: "ObjectMeta") -> FoundFile:
    modified = meta["last_modified"].isoformat()
    return FoundFile(meta["path"], meta["size"], meta["e_tag"] or modified)
