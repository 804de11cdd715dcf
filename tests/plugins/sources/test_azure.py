"""Azure over an emulated server: the real clients sign requests, list and read."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from tests.kit import blobs
from tests.kit.blobs import BlobServer
from tests.plugins.sources import reading, writing

KEY = base64.b64encode(b"a secret key of an account").decode()
ONE = [{"id": 1}]
TWO = [{"id": 2}]


@pytest.fixture
def server() -> Iterator[BlobServer]:
    with blobs.serving() as state:
        yield state


@pytest.fixture
def dataset(server: BlobServer, tmp_path: Path) -> Callable[..., reading.Dataset]:
    def make(path: str, **params: str) -> reading.Dataset:
        known = {
            "abfs_account": blobs.ACCOUNT,
            "abfs_access_key": KEY,
            "abfs_endpoint": f"{server.endpoint}/{blobs.ACCOUNT}",
        }
        return reading.Dataset("abfss", path, tmp_path, known | params)

    return make


@pytest.mark.parametrize("container", ["c", f"c@{blobs.ACCOUNT}.dfs.core.windows.net"])
def test_blobs_are_listed_and_read(
    container: str, server: BlobServer, dataset: Callable[..., reading.Dataset]
) -> None:
    server.blobs[("c", "d/y=1/x.parquet")] = writing.parquet(ONE)
    server.blobs[("c", "d/y=2/x.parquet")] = writing.parquet(TWO)
    server.blobs[("c", "one file.csv")] = b"a\n1\n"
    assert dataset(f"{container}/d").rows() == [{"id": 1, "y": 1}, {"id": 2, "y": 2}]
    assert dataset(f"{container}/d/*/x.parquet").rows() == dataset(f"{container}/d").rows()
    assert dataset(f"{container}/one file.csv").rows() == [{"a": 1}]
    assert all(header and "SharedKey" in header for header in server.signed)


def test_public_blobs_are_read_without_a_signature(
    server: BlobServer, dataset: Callable[..., reading.Dataset]
) -> None:
    server.blobs[("c", "x.csv")] = b"a\n1\n"
    public = dataset("c/x.csv", abfs_skip_signature="true", abfs_access_key="")
    assert public.rows() == [{"a": 1}]
    assert set(server.signed) == {None}


def test_refusals_are_told_apart_and_hide_the_key(
    server: BlobServer, dataset: Callable[..., reading.Dataset]
) -> None:
    with pytest.raises(DatasetError) as caught:
        dataset("c/x.csv").resolve()
    assert caught.value.type == "not_found"
    server.refuses = True
    with pytest.raises(DatasetError) as caught:
        dataset("c/x.csv").resolve()
    assert caught.value.type == "auth" and KEY not in caught.value.message
