"""Parses the location and the params of a result store in the manifest."""

from collections.abc import Mapping

from caraway_core.errors import DatasetError, ResultStoreError
from caraway_core.settings import Address
from caraway_core.tables import ResultPlace, StoreSpec
from caraway_plugins.sources import declared, store_params
from caraway_plugins.sources import params as checking
from caraway_plugins.sources.params import Params

_S3_PREFIX = "s3_"
_NAME = "results"


def folder(scheme: str, path: str, params: Mapping[str, str]) -> ResultPlace:
    """Return a place in an absolute folder.

    Raises:
        ResultStoreError: params are set, which a folder does not have.
    """
    if params:
        names = ", ".join(sorted(params))
        raise ResultStoreError(f"a folder has no params; remove '{names}'")
    return ResultPlace(scheme, path)


def bucket(scheme: str, path: str, params: Mapping[str, str]) -> ResultPlace:
    """Return a place in a bucket; `path` is `bucket/prefix`.

    The params are those of a dataset in such a bucket. For S3 the prefix `s3_` is optional. Without
    keys, S3 uses the role of the machine instead of public access, because writes are never
    anonymous.

    Raises:
        ResultStoreError: a param is unknown, or params contradict each other.
    """
    try:
        store_path = store_params.parse(_NAME, scheme, path, _params(scheme, params))
    except DatasetError as exc:
        raise ResultStoreError(exc.message) from exc
    return ResultPlace("bucket", store_path.key, store_path.store)


def remote(scheme: str, path: str, params: Mapping[str, str]) -> ResultPlace:
    """Return a place in a `caraway store`; `path` is `host:port/prefix`.

    The only param is `token`, which a cluster sets from its token file.

    Raises:
        ResultStoreError: the port or the token is missing, or a param is unknown.
    """
    address, _, prefix = path.partition("/")
    try:
        checking.checked(scheme, params, frozenset({"token"}))
        found = Address.parse(address)
    except DatasetError as exc:
        raise ResultStoreError(exc.message) from exc
    except ValueError:
        found = None
    if found is None or not found.port or address.startswith(":"):
        raise ResultStoreError(f"'{address}' is not HOST:PORT; write caraway://HOST:PORT/PREFIX")
    if not params.get("token"):
        raise ResultStoreError(
            "the token is missing; a cluster uses --token-file, otherwise set the param "
            "'token' to a secret such as ${secrets:STORE_TOKEN}"
        )
    token = {"token": params["token"]}
    return ResultPlace("remote", prefix, StoreSpec("caraway", str(found), _NAME, token))


def _params(scheme: str, given: Mapping[str, str]) -> Params:
    # The manifest does not set the timeout of the store.
    known = declared.OF_STORE[scheme] - {"client_timeout"}
    if scheme != "s3":
        return checking.checked(scheme, given, known)
    bare = {name.removeprefix(_S3_PREFIX) for name in known}
    checking.checked(scheme, given, known | bare)
    full = {}
    for name, text in given.items():
        written = name if name in known else _S3_PREFIX + name
        if written in full:
            bare_name = written.removeprefix(_S3_PREFIX)
            raise DatasetError("invalid", f"'{written}' and '{bare_name}' are the same; remove one")
        full[written] = text
    has_keys = "s3_key" in full or "s3_secret" in full
    full.setdefault("s3_auth", "key" if has_keys else "iam_role")
    return checking.checked(scheme, full, known)
