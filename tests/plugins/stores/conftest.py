"""Each adapter in turn, in its own folder."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.protocols.results import ResultStore
from caraway_core.tables import ResultPlace
from tests.kit import valkey
from tests.kit.remote_stores import RemoteStore, remote_store
from tests.kit.s3 import S3Server, s3_server
from tests.plugins.stores import adapters
from tests.plugins.stores.adapters import StateHarness

__all__ = ["s3_server"]


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """One server for all tests; each test has its own prefix."""
    with valkey.serving() as server:
        os.environ[valkey.ENVIRON] = server.url
        yield server.url
        del os.environ[valkey.ENVIRON]


@pytest.fixture(params=adapters.STATE)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> StateHarness:
    if request.param == "redis":
        request.getfixturevalue("valkey_url")
    return StateHarness(request.param, tmp_path)


@pytest.fixture(params=adapters.RESULTS)
def results(request: pytest.FixtureRequest, tmp_path: Path) -> ResultStore:
    place = ResultPlace("file", str(tmp_path / "results"))
    if request.param == "bucket":
        place = request.getfixturevalue("bucket")
    if request.param == "remote":
        place = request.getfixturevalue("remote").place(f"r{uuid.uuid4().hex}/jobs")
    return adapters.make_results(request.param, place)


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteStore]:
    """One `caraway store` for all tests; each test has its own prefix."""
    with remote_store(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture
def bucket(s3_server: S3Server) -> ResultPlace:
    """A prefix in a new bucket of a real server."""
    name = f"r{uuid.uuid4().hex}"
    s3_server.bucket(name)
    return adapters.bucket_place(s3_server, name)
