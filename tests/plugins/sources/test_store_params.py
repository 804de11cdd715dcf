"""Params of buckets as options of object stores."""

import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources import store_params
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.store_params import StorePath


def parse(connector: str, path: str, **params: str) -> StorePath:
    return store_params.parse("sales", connector, path, Params(params))


@pytest.mark.parametrize(
    ("path", "bucket", "key"),
    [("b/a/1", "b", "a/1"), ("/b/a/", "b", "a/"), ("b", "b", ""), ("b//a", "b", "/a")],
)
def test_paths(path: str, bucket: str, key: str) -> None:
    found = parse("s3", path)
    assert (found.store.kind, found.store.bucket, found.key) == ("s3", bucket, key)


@pytest.mark.parametrize(
    ("connector", "path", "params", "options"),
    [
        ("s3", "b", {}, {"region": "us-east-1", "skip_signature": "true"}),
        ("s3", "b", {"s3_key": "k"}, {"region": "us-east-1", "skip_signature": "true"}),
        ("s3", "b", {"s3_key": "k", "s3_secret": "s", "s3_region": "eu"},
         {"region": "eu", "access_key_id": "k", "secret_access_key": "s"}),
        ("s3", "b", {"s3_key": "k", "s3_secret": "s", "s3_auth": "iam_role"},
         {"region": "us-east-1"}),
        ("s3", "b", {"s3_endpoint": "http://h"},
         {"region": "us-east-1", "skip_signature": "true", "endpoint": "http://h",
          "allow_http": "true"}),
        ("gs", "b", {"gcs_service_account_path": "f"}, {"service_account": "f"}),
        ("gs", "b", {"google_service_account": "a", "gcs_service_account_path": "f"},
         {"service_account": "a"}),
        ("gs", "b", {"gcs_skip_signature": "true"}, {"skip_signature": "true"}),
        ("abfss", "c@acc.dfs.core.windows.net/x", {}, {"account_name": "acc"}),
        ("abfss", "c@acc.dfs/x", {"abfs_account": "own"}, {"account_name": "own"}),
        ("abfss", "c/x", {"abfs_use_emulator": "true"}, {"use_emulator": "true"}),
        ("abfss", "c@a/x", {"abfs_allow_http": "false", "allow_http": "true"},
         {"account_name": "a", "allow_http": "false"}),
        ("abfss", "c@a/x", {"abfs_skip_signature": "true"},
         {"account_name": "a", "skip_signature": "true"}),
    ],
)  # fmt: skip
def test_options(
    connector: str, path: str, params: dict[str, str], options: dict[str, str]
) -> None:
    assert parse(connector, path, **params).store.options == options


@pytest.mark.parametrize(
    ("connector", "path", "params", "said"),
    [
        ("s3", "", {}, "has no bucket"),
        ("s3", "///", {}, "has no bucket"),
        ("abfss", "@acc.dfs/x", {}, "has no bucket"),
        ("abfss", "c/x", {}, "the storage account is missing"),
        ("s3", "b", {"s3_auth": "key", "s3_key": "k"}, "set params.s3_key and s3_secret"),
        ("s3", "b", {"s3_auth": "magic"}, "set it to public, key or iam_role"),
        ("s3", "b", {"allow_http": "perhaps"}, "set it to true or false"),
        ("s3", "b", {"s3_endpoint": "http://h", "allow_http": "false"}, "allow_http is false"),
    ],
)
def test_params_that_are_wrong(
    connector: str, path: str, params: dict[str, str], said: str
) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        parse(connector, path, **params)
    assert caught.value.type == "invalid"


def test_an_alias_is_that_of_a_store_and_its_login() -> None:
    alias = parse("s3", "b/1").store.alias
    assert parse("s3", "b/2").store.alias == alias
    others = [parse("s3", "c/1"), parse("gs", "b/1"), parse("s3", "b/1", s3_region="eu")]
    others.append(store_params.parse("other", "s3", "b/1", Params({})))
    assert len({alias, *(each.store.alias for each in others)}) == 5
    assert "hunter2" not in parse("s3", "b", s3_key="k", s3_secret="hunter2").store.alias
