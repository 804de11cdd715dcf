"""Answers GraphQL requests with graphql-core, which validates them as servers do."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphql

from tests.kit.api_server import ApiAnswer, ApiRequest


def answering(schema: str, root: Mapping[str, Any]) -> Callable[[ApiRequest], ApiAnswer]:
    """Return an endpoint for a schema. Fields are values or functions of their arguments."""
    built = graphql.build_schema(schema)

    def answer(request: ApiRequest) -> ApiAnswer:
        if request.method != "POST" or request.headers.get("content-type") != "application/json":
            return ApiAnswer({"message": "a query is a POST of JSON"}, 400)
        sent = json.loads(request.body)
        found = graphql.graphql_sync(
            built,
            sent["query"],
            root,
            variable_values=sent.get("variables"),
            field_resolver=_resolve,
        )
        return ApiAnswer(found.formatted)

    return answer


def _resolve(source: Any, info: graphql.GraphQLResolveInfo[Any], **arguments: Any) -> Any:
    value = source.get(info.field_name)
    return value(**arguments) if callable(value) else value


def connection(rows: Sequence[Any]) -> Callable[..., Mapping[str, Any]]:
    """Return a field that pages through rows by cursors, two of them unless `first` says more."""

    def page(first: int = 2, after: str | None = None, **_: Any) -> Mapping[str, Any]:
        start = int(after.removeprefix("c:")) if after else 0
        end = start + first
        return {
            "nodes": rows[start:end],
            "edges": [{"node": row} for row in rows[start:end]],
            "totalCount": len(rows),
            "pageInfo": {"hasNextPage": end < len(rows), "endCursor": f"c:{end}"},
        }

    return page
