"""Published files are found by others, in folders and in buckets."""

from pathlib import Path

import pytest

from caraway_core.errors import CarawayError, ResultStoreError
from caraway_core.tables import ResultPlace, StoreSpec
from caraway_plugins import object_stores
from caraway_plugins.stores import locations, published
from caraway_plugins.stores.published import Published
from tests.kit.s3 import S3Server, s3_server

__all__ = ["s3_server"]


def bucket(server: S3Server, name: str) -> Published:
    return published.opened(locations.bucket("s3", name, server.params()))


@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_files_are_written_read_and_deleted(kind: str, tmp_path: Path, s3_server: S3Server) -> None:
    if kind == "folder":
        place, root = published.opened(ResultPlace("file", str(tmp_path))), f"file://{tmp_path}"
    else:
        s3_server.bucket("published")
        place, root = bucket(s3_server, "published/a/b"), "s3://published/a/b"
    assert place.read("t/one/x.json") is None
    place.write("t/one/x.json", b"1")
    place.write("t/one/y.json", b"2")
    place.write("t/two/x.json", b"3")
    assert place.read("t/one/x.json") == b"1"
    assert place.location("t/one/x.json") == f"{root}/t/one/x.json"
    assert place.folders("t") == ["one", "two"]
    assert place.folders("") == ["t"]
    place.delete("t/one")
    assert place.read("t/one/y.json") is None
    assert place.read("t/two/x.json") == b"3"
    assert place.folders("none") == []


def test_places_that_others_cannot_read_are_refused() -> None:
    remote = locations.remote("caraway", "host:8095/x", {"token": "t"})
    with pytest.raises(ResultStoreError, match="other systems cannot read a caraway store"):
        published.opened(remote)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, s3_server: S3Server) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CarawayError, match="published files"):
        published.opened(ResultPlace("file", str(tmp_path / "file")))
    absent = bucket(s3_server, "no-such-bucket/x")
    with pytest.raises(CarawayError, match="no-such-bucket"):
        absent.write("a", b"1")


def test_urls_of_azure_name_the_account() -> None:
    store = StoreSpec("abfss", "lake", "alias", {"account_name": "acme"})
    assert object_stores.public_url(store, "a/b") == "abfss://lake@acme.dfs.core.windows.net/a/b"
