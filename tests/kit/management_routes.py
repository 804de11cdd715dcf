"""Requests for every route that a management service declares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI

from caraway_management.api import description
from tests.kit.openapi_samples import sample


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """A route, and a request that its description allows."""

    method: str
    path: str
    """As declared, with the names of its parameters."""
    scope: str | None
    needs_credential: bool
    within: str | None
    """Where the organization comes from: `header`, `path`, or None."""
    name: str
    body: Any
    query: Mapping[str, Any]

    @property
    def title(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_change(self) -> bool:
        return self.method not in ("GET", "HEAD")

    def at(self, ids: Mapping[str, object], other: object = 999_999_999) -> str:
        """Return the path with ids in place of its parameters."""
        path = self.path
        for name in parameters(path):
            path = path.replace(f"{{{name}}}", str(ids.get(name, other)))
        return path


def parameters(path: str) -> list[str]:
    """Return the names of the parameters of a declared path."""
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def requests(app: FastAPI, *, with_aliases: bool = False) -> Iterator[RouteRequest]:
    """Return a request for each route, in the order of paths."""
    document = app.openapi()
    found = sorted(description.declared_routes(app), key=lambda each: (each[0], each[1]))
    for path, method, route in found:
        if path.startswith("/v1/apps") and not with_aliases:
            continue
        operation = document["paths"][path][method.lower()]
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        needs_credential, scope = description.needs_of(route)
        query = {
            each["name"]: sample(each["schema"], document, each["name"])
            for each in operation.get("parameters", ())
            if each["in"] == "query" and each.get("required")
        }
        yield RouteRequest(
            method, path, scope, needs_credential, description.org_of(route), route.name,
            None if schema is None else sample(schema, document), query,
        )  # fmt: skip
