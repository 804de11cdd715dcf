"""Parsing of locations and params of result stores."""

import pytest

from caraway_core.errors import ResultStoreError
from caraway_core.tables import ResultPlace
from caraway_plugins.stores import locations

KEYS = {"access_key_id": "k", "secret_access_key": "s"}


def options(scheme: str, path: str, **params: str) -> dict[str, str]:
    store = locations.bucket(scheme, path, params).store
    assert store is not None
    return dict(store.options)


def test_folder_is_a_place() -> None:
    assert locations.folder("file", "/a b", {}) == ResultPlace("file", "/a b")


def test_folder_takes_no_params() -> None:
    with pytest.raises(ResultStoreError, match="a folder has no params; remove 's3_key'"):
        locations.folder("file", "/a", {"s3_key": "hidden"})


@pytest.mark.parametrize("prefix", ["", "a/b"])
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_bucket_and_prefix_are_separated(scheme: str, prefix: str) -> None:
    place = locations.bucket(scheme, f"b/{prefix}", {})
    assert place.kind == "bucket" and place.path == prefix
    assert place.store is not None and (place.store.kind, place.store.bucket) == (scheme, "b")
    assert place.title == f"{scheme}://b/{prefix}"


def test_names_may_lack_the_prefix() -> None:
    bare = {"endpoint": "http://e", "region": "r", "key": "k", "secret": "s"}
    full = {f"s3_{name}": text for name, text in bare.items()}
    expected = KEYS | {"endpoint": "http://e", "region": "r", "allow_http": "true"}
    assert options("s3", "b", **bare) == options("s3", "b", **full) == expected


def test_without_keys_the_machine_signs_in() -> None:
    assert options("s3", "b") == {"region": "us-east-1"}
    assert options("s3", "b", auth="public")["skip_signature"] == "true"


def test_azure_account_may_stand_in_the_location() -> None:
    assert options("abfss", "c@a.dfs.core.windows.net/x") == {"account_name": "a"}


@pytest.mark.parametrize(
    ("scheme", "params", "message"),
    [
        ("s3", {"s3_regoin": "hidden"}, "no s3 param 's3_regoin'; did you mean 's3_region'?"),
        ("s3", {"client_timeout": "hidden"}, "no s3 param 'client_timeout'"),
        (
            "s3",
            {"s3_key": "hidden", "key": "hidden"},
            "'s3_key' and 'key' are the same; remove one",
        ),
        ("s3", {"s3_key": "hidden"}, "set params.s3_key and s3_secret"),
        ("s3", {"s3_key": "", "s3_secret": ""}, "set params.s3_key and s3_secret"),
        ("s3", {"auth": "role"}, "params.s3_auth is 'role'; set it to public, key or iam_role"),
        ("s3", {"endpoint": "http://e", "allow_http": "false"}, "allow_http is false"),
        ("gs", {"region": "hidden"}, "no gs param 'region'"),
        ("abfss", {"abfs_access_key": "hidden"}, "the storage account is missing"),
    ],
)
def test_errors_of_params_contain_no_secrets(
    scheme: str, params: dict[str, str], message: str
) -> None:
    with pytest.raises(ResultStoreError) as caught:
        locations.bucket(scheme, "b/x", params)
    assert message in caught.value.message
    assert "hidden" not in caught.value.message


def test_store_is_a_place_that_shows_no_token() -> None:
    place = locations.remote("caraway", "state:8095/a/b", {"token": "hidden"})
    assert (place.kind, place.path, place.title) == ("remote", "a/b", "caraway://state:8095/a/b")
    assert place.store is not None and place.store.options == {"token": "hidden"}
    assert "hidden" not in repr(place)


@pytest.mark.parametrize(
    ("path", "params", "message"),
    [
        ("state/a", {"token": "hidden"}, "'state' is not HOST:PORT"),
        ("state:0/a", {"token": "hidden"}, "'state:0' is not HOST:PORT"),
        ("state:99999", {"token": "hidden"}, "'state:99999' is not HOST:PORT"),
        (":1", {"token": "hidden"}, "':1' is not HOST:PORT"),
        ("state:1", {}, "the token is missing; a cluster uses --token-file"),
        ("state:1", {"token": ""}, "the token is missing"),
        ("state:1", {"tokn": "hidden"}, "no caraway param 'tokn'; did you mean 'token'?"),
    ],
)
def test_invalid_store_is_rejected(path: str, params: dict[str, str], message: str) -> None:
    with pytest.raises(ResultStoreError) as caught:
        locations.remote("caraway", path, params)
    assert message in caught.value.message and "hidden" not in caught.value.message
