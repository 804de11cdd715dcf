"""DataFusion's object stores: created once per alias, and registered in each context."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from urllib.parse import parse_qsl

from datafusion import SessionContext, object_store

from caraway_core.tables import StoreSpec, TableSpec

_KEPT = 256
_made: OrderedDict[str, object] = OrderedDict()
_lock = Lock()


def register(context: SessionContext, spec: TableSpec) -> None:
    """Register the stores of a table in a context; every context that runs queries needs them."""
    for store in {scan.store.alias: scan.store for scan in spec.scans if scan.store}.values():
        context.register_object_store(f"{store.kind}://", _made_once(store), host=store.alias)


def _made_once(spec: StoreSpec) -> object:
    with _lock:
        if spec.alias not in _made:
            with _environment(_unnamed(spec)):
                _made[spec.alias] = _MAKERS[spec.kind](spec.bucket, spec.options)
            if len(_made) > _KEPT:
                _made.popitem(last=False)
        return _made[spec.alias]


def _s3(bucket: str, options: Mapping[str, str]) -> object:
    return object_store.AmazonS3(
        bucket,
        region=options.get("region"),
        access_key_id=options.get("access_key_id"),
        secret_access_key=options.get("secret_access_key"),
        session_token=options.get("session_token"),
        endpoint=options.get("endpoint"),
        allow_http=options.get("allow_http") == "true",
    )


def _gs(bucket: str, options: Mapping[str, str]) -> object:
    return object_store.GoogleCloud(bucket, service_account_path=options.get("service_account"))


def _abfss(container: str, options: Mapping[str, str]) -> object:
    pairs = parse_qsl(options.get("sas_key", "").removeprefix("?"))
    return object_store.MicrosoftAzure(
        container,
        account=options.get("account_name"),
        access_key=options.get("account_key"),
        bearer_token=options.get("token"),
        client_id=options.get("client_id"),
        client_secret=options.get("client_secret"),
        tenant_id=options.get("tenant_id"),
        sas_query_pairs=pairs or None,
        use_emulator=options.get("use_emulator") == "true",
        allow_http=options.get("allow_http") == "true",
    )


_MAKERS: Mapping[str, Callable[[str, Mapping[str, str]], object]] = {
    "s3": _s3,
    "gs": _gs,
    "abfss": _abfss,
}

# Options without a constructor argument; the constructors read the environment.
_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "s3": {"skip_signature": "AWS_SKIP_SIGNATURE"},
    "gs": {"skip_signature": "GOOGLE_SKIP_SIGNATURE"},
    "abfss": {"skip_signature": "AZURE_SKIP_SIGNATURE", "endpoint": "AZURE_STORAGE_ENDPOINT"},
}


def _unnamed(spec: StoreSpec) -> dict[str, str]:
    variables = _VARIABLES[spec.kind]
    return {variables[name]: text for name, text in spec.options.items() if name in variables}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while one store is created. The caller's lock excludes others."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
