"""Answers of GraphQL queries, from a server that validates them."""

import json
from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import scanners
from caraway_core.tables.scanners import RowRequest
from tests.kit import api_server, graphql_server
from tests.kit.api_server import ApiAnswer, ApiServer
from tests.plugins.sources import reading

SCHEMA = """
type PageInfo { hasNextPage: Boolean! endCursor: String }
type Owner { login: String! city: String }
type Order { id: Int! total: Float owner: Owner lines(first: Int, after: String): Orders }
type Edge { node: Order }
type Orders { nodes: [Order] edges: [Edge] pageInfo: PageInfo! totalCount: Int! }
type Shop { orders(first: Int, after: String, state: String): Orders }
type Query {
  orders(first: Int, after: String, state: String): Orders
  shop(name: String): Shop
  one: Order
  many: [Order]
}
"""
ROWS: list[dict[str, Any]] = [
    {"id": number, "total": number / 2, "owner": {"login": f"u{number}", "city": None}}
    for number in range(5)
]
IDS = [{"id": each["id"]} for each in ROWS]


@pytest.fixture
def shop(server: ApiServer) -> ApiServer:
    for row in ROWS:
        row["lines"] = graphql_server.connection([{"id": 7}])
    orders = graphql_server.connection(ROWS)
    root = {
        "orders": orders,
        "shop": lambda name=None: {"orders": orders} if name != "none" else None,
        "one": ROWS[0],
        "many": ROWS[:2],
    }
    server.answers["/graphql"] = graphql_server.answering(SCHEMA, root)
    return server


def dataset(server: ApiServer, tmp_path: Path, query: str, **params: str) -> reading.Dataset:
    given = {"graphql_query": query, **params}
    return reading.Dataset("graphql", f"{server.url}/graphql", tmp_path, given)


def refusal(of: reading.Dataset) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        of.resolve()
    return caught.value


@pytest.mark.parametrize(
    "query",
    [
        "{ orders { nodes { id } pageInfo { hasNextPage endCursor } } }",
        "{ orders(first: 2) { pageInfo { endCursor hasNextPage } nodes { id } } }",
        '{ orders(first: 3, after: null, state: "a)(\\"{") { nodes { id } '
        "pageInfo { hasNextPage endCursor } } }",
        "query Q($n: Int = 2, $next: String) "
        "{ orders(first: $n, after: $next) { nodes { id } pageInfo { hasNextPage endCursor } } }",
        "query { # pageInfo {\n shop(name: \"x\") { mine: orders { nodes { id } "
        "pageInfo { hasNextPage endCursor } } } }",
        "{ shop { ... on Shop { orders @include(if: true) { nodes { id } "
        "pageInfo { hasNextPage endCursor } } } } }",
        '{ orders(state: """a " { """) { nodes { id } pageInfo { hasNextPage endCursor } } }',
    ],
)  # fmt: skip
def test_pages_of_a_connection_are_read(query: str, shop: ApiServer, tmp_path: Path) -> None:
    assert dataset(shop, tmp_path, query).rows() == IDS


def test_edges_are_rows_where_the_pointer_says_so(shop: ApiServer, tmp_path: Path) -> None:
    query = """{ orders(first: 2) { edges { node { id owner { login } } }
                 pageInfo { hasNextPage endCursor } } }"""
    params = {"json_pointer": "/data/orders/edges", "unnest_depth": "2"}
    rows = dataset(shop, tmp_path, query, **params).rows()
    assert rows == [{"id": each["id"], "login": each["owner"]["login"]} for each in ROWS]


def test_nested_connections_are_not_paged(shop: ApiServer, tmp_path: Path) -> None:
    query = """{ orders { nodes { id lines { nodes { id } pageInfo { hasNextPage endCursor } } }
                 pageInfo { hasNextPage endCursor } } }"""
    assert refusal(dataset(shop, tmp_path, query)).type == "invalid"
    of = dataset(shop, tmp_path, query, json_pointer="/data/orders/nodes")
    assert [row["id"] for row in of.rows()] == [0, 1, 2, 3, 4]
    of = dataset(shop, tmp_path, query, json_pointer="/data/other")
    assert "in another list" in refusal(of).message


def test_an_answer_without_pages_is_one(shop: ApiServer, tmp_path: Path) -> None:
    of = dataset(shop, tmp_path, "{ many { id } }", json_pointer="/data/many")
    assert of.rows() == IDS[:2]
    of = dataset(shop, tmp_path, "{ one { id } }", json_pointer="/data/one")
    assert of.rows() == IDS[:1]
    assert "json_pointer is missing" in refusal(dataset(shop, tmp_path, "{ many { id } }")).message


def test_a_limit_stops_paging(shop: ApiServer, tmp_path: Path) -> None:
    query = "{ orders { nodes { id } pageInfo { hasNextPage endCursor } } }"
    spec = dataset(shop, tmp_path, query).resolve()
    shop.requests.clear()
    batches = list(scanners.of(spec).scan(spec, RowRequest(["id"], limit=3)))
    assert len(shop.requests) == len(batches) == 2


def test_errors_of_an_answer_are_errors(shop: ApiServer, tmp_path: Path) -> None:
    found = refusal(dataset(shop, tmp_path, "{ nothing }", json_pointer="/data"))
    assert found.type == "invalid" and "Cannot query field 'nothing'" in found.message
    for kind, type_ in (("NOT_FOUND", "not_found"), ("RATE_LIMITED", "unavailable")):
        shop.say("/graphql", {"data": {"many": []}, "errors": [{"type": kind, "message": "m"}]})
        of = dataset(shop, tmp_path, "{ many { id } }", json_pointer="/data/many")
        assert refusal(of).type == type_


@pytest.mark.parametrize("word", ["mutation", "subscription"])
def test_only_queries_are_sent(word: str, shop: ApiServer, tmp_path: Path) -> None:
    of = dataset(shop, tmp_path, f"# x\n{word} {{ drop }}", json_pointer="/data/drop")
    assert "a dataset only reads" in refusal(of).message
    assert not shop.requests


def test_pages_without_a_cursor_or_in_a_list_are_errors(shop: ApiServer, tmp_path: Path) -> None:
    query = "{ orders { nodes { id } pageInfo { hasNextPage } } }"
    of = dataset(shop, tmp_path, query)
    with pytest.raises(QueryError, match="no `endCursor`"):
        list(scanners.of(spec := of.resolve()).scan(spec, RowRequest(["id"])))
    query = "{ many { id lines { nodes { id } pageInfo { hasNextPage endCursor } } } }"
    of = dataset(shop, tmp_path, query)
    assert refusal(of).type == "schema"


def test_no_rows_where_a_field_before_them_is_null(shop: ApiServer, tmp_path: Path) -> None:
    text = json.dumps({"data": {"shop": {"orders": None}}}).encode()
    shop.say("/graphql", text)
    query = "{ shop { orders { nodes { id } pageInfo { hasNextPage endCursor } } } }"
    assert refusal(dataset(shop, tmp_path, query)).type == "schema"


def test_logins_are_sent_and_not_shown(shop: ApiServer, tmp_path: Path) -> None:
    query = "{ one { id } }"
    params = {"json_pointer": "/data/one", "graphql_headers": "X-Key: hidden"}
    of = dataset(shop, tmp_path, query, graphql_auth_token="hidden", **params)
    assert "hidden" not in repr(of.resolve())
    sent = shop.requests[-1].headers
    assert (sent["authorization"], sent["x-key"]) == ("Bearer hidden", "hidden")
    login = {"graphql_auth_user": "u", "graphql_auth_pass": "hidden"}
    dataset(shop, tmp_path, query, **login, **params).resolve()
    assert shop.requests[-1].headers["authorization"] == "Basic dTpoaWRkZW4="


def test_another_host_gets_no_query(shop: ApiServer, tmp_path: Path) -> None:
    with api_server.running() as other:
        place = {"location": f"{other.url}/graphql"}
        shop.answers["/graphql"] = lambda _: ApiAnswer(b"", 307, place)
        of = dataset(shop, tmp_path, "{ one { id } }", json_pointer="/data/one")
        assert "redirects to another host" in refusal(of).message
        assert not other.requests


@pytest.mark.parametrize("path", ["", "api.example/graphql", "file:///x", "https://u:p@h/x"])
def test_an_address_is_needed(path: str, tmp_path: Path) -> None:
    of = reading.Dataset("graphql", path, tmp_path, {"graphql_query": "{ a }"})
    assert refusal(of).type == "invalid"
