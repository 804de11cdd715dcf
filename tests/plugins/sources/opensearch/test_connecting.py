"""Logins, certificates and refusals, of an API in place of a server that has them."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.documents.table import DocumentTable
from tests.kit import api_server
from tests.kit.api_server import ApiAnswer, ApiRequest, ApiServer
from tests.kit.certificates import make_certificate
from tests.kit.engine import rows, session

INDEX = {
    "mappings": {"properties": {"n": {"type": "long"}}},
    "settings": {"index": {"number_of_shards": "1"}},
    "aliases": {},
}
HITS = [{"_id": "1", "_index": "items", "_source": {"n": 7}, "sort": [0]}]
SHARDS = {"total": 1, "failed": 0}
ANSWER = {"hits": {"hits": HITS, "total": {"value": 1}}, "_shards": SHARDS, "timed_out": False}
PRODUCTS = ("opensearch", "elasticsearch")


def _fill(api: ApiServer, search: Any = ANSWER) -> None:
    api.say("/items", {"items": INDEX})
    api.say("/items/_search", ANSWER)
    api.say("/_search", search)
    api.say("/items/_search/point_in_time", {"pit_id": "p"})
    api.say("/items/_pit", {"id": "p"})
    api.say("/_search/point_in_time", {})
    api.say("/_pit", {})


def _table(product: str, endpoint: str, **params: str) -> DocumentTable:
    given = {f"{product}_{name}": value for name, value in params.items()}
    request = SourceRequest(
        TableName("t"), product, "items",
        {f"{product}_endpoint": endpoint, "max_retries": "0", **given}, (), "read", Path(), Path(),
    )  # fmt: skip
    table = registry.SOURCES.load(product)().resolve(request)
    assert isinstance(table, DocumentTable)
    return table


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    ("params", "header"),
    [
        ({"user": "u", "pass": "p"}, "Basic dTpw"),
        ({"api_key": "abc"}, "ApiKey abc"),
        ({}, None),
    ],
)
async def test_logins(
    api: ApiServer, product: str, params: dict[str, str], header: str | None
) -> None:
    _fill(api)
    over = session({"t": _table(product, f"{api.url}/", **params)})
    assert await rows(over, "SELECT n FROM t WHERE n > 5") == [{"n": 7}]
    assert {each.headers.get("authorization") for each in api.requests} == {header}
    last = api.requests[-1]
    assert (last.method, last.path) == (
        "DELETE", "/_search/point_in_time" if product == "opensearch" else "/_pit",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "type_"),
    [(401, "auth"), (403, "auth"), (429, "unavailable"), (500, "unavailable"), (400, "invalid")],
)
@pytest.mark.parametrize("product", PRODUCTS)
def test_refusals_have_the_code_of_their_kind(
    api: ApiServer, product: str, status: int, type_: str
) -> None:
    api.answers["/items"] = lambda _: ApiAnswer({"error": "hunter2"}, status)
    with pytest.raises(DatasetError) as caught:
        _table(product, api.url, user="u", **{"pass": "hunter2"})
    assert caught.value.type == type_
    assert "hunter2" not in caught.value.message
    if type_ == "auth":
        assert f"{product}_user and {product}_pass" in caught.value.message


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({**ANSWER, "timed_out": True}, "a part of"),
        ({**ANSWER, "_shards": {"total": 1, "failed": 1}}, "a part of"),
        ({**ANSWER, "_shards": {"total": 2, "failed": 0}}, "other indexes or shards"),
    ],
)
async def test_answers_that_are_not_whole_are_errors(
    api: ApiServer, search: Any, message: str
) -> None:
    _fill(api, search)
    table = _table("opensearch", api.url)
    with pytest.raises(Exception, match=message):
        await rows(session({"t": table}), "SELECT n FROM t")


async def test_point_in_time_that_ended_is_an_error(api: ApiServer) -> None:
    _fill(api)
    api.answers["/_search"] = lambda _: ApiAnswer({}, 404)
    table = _table("opensearch", api.url)
    with pytest.raises(Exception, match="ended the point in time of this statement; repeat it"):
        await rows(session({"t": table}), "SELECT n FROM t")


async def test_pages_that_are_too_large_are_asked_in_parts(api: ApiServer) -> None:
    sizes = []

    def answer(request: ApiRequest) -> ApiAnswer:
        size = int(request.body.partition('"size": ')[2].partition("}")[0])
        sizes.append(size)
        return ApiAnswer(b'"' + b"x" * (65 * 2**20) + b'"' if size > 300 else ANSWER)

    _fill(api)
    api.answers["/_search"] = answer
    table = _table("opensearch", api.url)
    assert await rows(session({"t": table}), "SELECT n FROM t") == [{"n": 7}]
    assert sizes == [5_000, 1_250, 312, 78]


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key, is_authority=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with api_server.running(context) as server:
        yield server, certificate


async def test_certificates_of_an_own_authority(secure: tuple[ApiServer, Path]) -> None:
    server, certificate = secure
    _fill(server)
    address = f"https://{server.address}"
    with pytest.raises(DatasetError, match="cannot be reached") as caught:
        _table("opensearch", address)
    assert caught.value.type == "unavailable"
    table = _table("opensearch", address, sslrootcert=str(certificate))
    assert await rows(session({"t": table}), "SELECT n FROM t") == [{"n": 7}]
