"""Datasets that are the answer of a GraphQL query: `from: graphql:https://host/graphql`."""

from collections.abc import Mapping
from dataclasses import replace

import httpx

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_plugins.sources import params, web_address
from caraway_plugins.sources.api import describing, limiting, pointers
from caraway_plugins.sources.api.calls import ApiCall
from caraway_plugins.sources.api.table import ApiTable
from caraway_plugins.sources.graphql import connections, declared
from caraway_plugins.sources.graphql.pages import GraphqlPages
from caraway_plugins.sources.params import Params


class GraphqlSource:
    """The rows of a query, page by page."""

    declaration = declared.GRAPHQL
    capabilities = SourceCapabilities(projection=True, filters=True, limit=True)

    def resolve(self, request: SourceRequest) -> ApiTable:
        known = params.checked(request.connector, request.params)
        limits = replace(
            limiting.limits_of(request, known),
            secret_params="graphql_auth_token, or graphql_auth_user and graphql_auth_pass",
        )
        most = known.count("schema_infer_max_records")
        return describing.described(request, _pages(request, known), limits, most)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return describing.fingerprint(self.resolve(request))


def _pages(request: SourceRequest, known: Params) -> GraphqlPages:
    query = known.text("graphql_query")
    if query is None:
        raise DatasetError("invalid", f"dataset '{request.name}': params.graphql_query is missing")
    written = known.text("json_pointer")
    pointer = None if written is None else pointers.check(written, "json_pointer")
    connection = connections.find(query, pointer)
    if pointer is None:
        if connection is None:
            raise DatasetError(
                "invalid",
                f"dataset '{request.name}': params.json_pointer is missing; give the path to the "
                "rows in an answer, such as /data/orders",
            )
        pointer = connection.pointer("nodes")
    return GraphqlPages(
        call=ApiCall(_address(request), _address(request), _headers(known), body=""),
        query=query,
        pointer=pointer,
        connection=connection,
        unnest_depth=limiting.number(known, "unnest_depth", 0),
        most_pages=limiting.most_pages(known),
    )


def _address(request: SourceRequest) -> str:
    try:
        url = httpx.URL(request.path)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': 'graphql:' has no address; write "
            "'graphql:https://host/graphql', and logins under params",
        )
    return str(url)


def _headers(known: Params) -> Mapping[str, str]:
    headers = dict(web_address.headers(known, "graphql_headers"))
    headers["content-type"] = "application/json"
    login = web_address.basic(known, "graphql_auth_user", "graphql_auth_pass")
    if token := known.text("graphql_auth_token"):
        headers["authorization"] = f"Bearer {token}"
    elif login:
        headers["authorization"] = login
    return headers
