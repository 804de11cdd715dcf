"""Translates the params of s3, gs and abfss datasets to options of object stores."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from caraway_core.errors import DatasetError
from caraway_core.tables import StoreKind, StoreSpec
from caraway_plugins.sources.params import Params

# From params of the manifest to options of the store. If several params map to one option, the
# first that is set is used.
_S3 = {
    "s3_region": "region",
    "s3_endpoint": "endpoint",
    "s3_key": "access_key_id",
    "s3_secret": "secret_access_key",
    "s3_session_token": "session_token",
    "allow_http": "allow_http",
}
_GS = {
    "google_service_account": "service_account",
    "google_service_account_path": "service_account",
    "gcs_service_account_path": "service_account",
}
_ABFSS = {
    "abfs_account": "account_name",
    "azure_storage_account_name": "account_name",
    "abfs_access_key": "account_key",
    "azure_storage_account_key": "account_key",
    "abfs_bearer_token": "token",
    "abfs_client_id": "client_id",
    "abfs_client_secret": "client_secret",
    "abfs_tenant_id": "tenant_id",
    "abfs_sas_string": "sas_key",
    "abfs_endpoint": "endpoint",
    "abfs_use_emulator": "use_emulator",
    "abfs_allow_http": "allow_http",
    "allow_http": "allow_http",
}
_OPTIONS: Mapping[StoreKind, Mapping[str, str]] = {"s3": _S3, "gs": _GS, "abfss": _ABFSS}
_FLAGS = ("allow_http", "use_emulator")
_KINDS: Mapping[str, StoreKind] = {"s3": "s3", "gs": "gs", "abfss": "abfss"}


@dataclass(frozen=True, slots=True)
class StorePath:
    """A store and a key in it."""

    store: StoreSpec
    key: str


def parse(name: str, connector: str, path: str, params: Params) -> StorePath:
    """Parse the bucket, key and credentials of a dataset.

    Raises:
        DatasetError: the path has no bucket, or the params contradict each other.
    """
    kind = _KINDS[connector]
    bucket, _, key = path.lstrip("/").partition("/")
    options = _options(kind, params)
    if kind == "abfss" and "@" in bucket:
        bucket, _, host = bucket.partition("@")
        options.setdefault("account_name", host.split(".")[0])
    if not bucket:
        raise DatasetError("invalid", f"`from: {connector}://{path}` has no bucket")
    _authenticate(kind, params, options)
    return StorePath(StoreSpec(kind, bucket, _alias(name, kind, bucket, options), options), key)


def _options(kind: StoreKind, params: Params) -> dict[str, str]:
    options: dict[str, str] = {}
    for param, option in _OPTIONS[kind].items():
        if option in _FLAGS and params.text(param) is not None:
            options.setdefault(option, str(params.flag(param, False)).lower())
        elif text := params.text(param):
            options.setdefault(option, text)
    if options.get("endpoint", "").startswith("http://") and options.get("allow_http") == "false":
        raise DatasetError("invalid", "the endpoint is http:// and allow_http is false")
    if options.get("endpoint", "").startswith("http://"):
        options["allow_http"] = "true"
    return options


def _authenticate(kind: StoreKind, params: Params, options: dict[str, str]) -> None:
    if kind == "s3":
        _authenticate_s3(params, options)
    elif kind == "gs" and params.flag("gcs_skip_signature", False):
        options["skip_signature"] = "true"
    elif kind == "abfss":
        if params.flag("abfs_skip_signature", False):
            options["skip_signature"] = "true"
        if "account_name" not in options and options.get("use_emulator") != "true":
            raise DatasetError(
                "invalid",
                "the storage account is missing; set params.abfs_account, or write "
                "abfss://container@account.dfs.core.windows.net/path",
            )


def _authenticate_s3(params: Params, options: dict[str, str]) -> None:
    has_keys = "access_key_id" in options and "secret_access_key" in options
    options.setdefault("region", "us-east-1")
    match params.text("s3_auth") or ("key" if has_keys else "public"):
        case "key" if not has_keys:
            raise DatasetError("invalid", "s3_auth is 'key': set params.s3_key and s3_secret")
        case "key":
            return
        case "public" | "iam_role" as mode:
            for option in ("access_key_id", "secret_access_key", "session_token"):
                options.pop(option, None)
            if mode == "public":
                options["skip_signature"] = "true"
        case other:
            raise DatasetError(
                "invalid", f"params.s3_auth is '{other}'; set it to public, key or iam_role"
            )


def _alias(name: str, kind: str, bucket: str, options: Mapping[str, str]) -> str:
    words = (name, kind, bucket, *(f"{key}={options[key]}" for key in sorted(options)))
    return "c" + hashlib.sha256("\0".join(words).encode()).hexdigest()[:20]
