"""Makes a tool of each route, from the description of the API."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from caraway_management.domain import refusals

JsonSchema = dict[str, Any]
_EXCLUDED = (
    "/v1/apps",
    "/v1/health",
)
_EXCLUDED_TAGS = frozenset({"oauth", "sessions", "device sign-in"})
"""Signing in is for people and their browsers."""
_METHODS = ("get", "post", "put", "patch", "delete")
_BODY = "body"
ORG = "org"
_ORG_SCHEMA: JsonSchema = {
    "type": "string",
    "description": "The handle of the organization. Omitted: that of the credential.",
}


@dataclass(frozen=True, slots=True)
class RouteCall:
    """A request that a tool call stands for."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class RouteTool:
    """A tool that calls one route."""

    name: str
    description: str
    schema: JsonSchema
    method: str
    path: str
    in_path: frozenset[str]
    in_query: frozenset[str]
    in_headers: Mapping[str, str]
    has_body: bool
    is_body_whole: bool
    """True if the body is one argument, because it is not an object."""

    @property
    def is_read_only(self) -> bool:
        return self.method == "GET"

    def call(self, arguments: Mapping[str, object]) -> RouteCall:
        """Return the request of a call. The route itself checks the arguments.

        Raises:
            RefusedError: a part of the path is missing: it would be the path of another route.
        """
        path = self.path
        for name in sorted(self.in_path):
            value = arguments.get(name)
            if value is None or not str(value):
                raise refusals.invalid_field(name, "is missing")
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        headers = {
            header: str(arguments[name])
            for name, header in self.in_headers.items()
            if arguments.get(name) is not None
        }
        query = {
            name: _query_text(arguments[name])
            for name in self.in_query
            if arguments.get(name) is not None
        }
        taken = self.in_path | self.in_query | set(self.in_headers)
        body = {name: value for name, value in arguments.items() if name not in taken}
        return RouteCall(
            self.method,
            path,
            query,
            headers,
            (arguments.get(_BODY) if self.is_body_whole else body) if self.has_body else None,
        )


def read_tools(description: Mapping[str, object]) -> dict[str, RouteTool]:
    """Return the tools of the routes that an OpenAPI description has, by name."""
    return {tool.name: tool for tool in _tools(description)}


def _tools(description: Mapping[str, Any]) -> Iterator[RouteTool]:
    schemas = description.get("components", {}).get("schemas", {})
    for path, methods in description["paths"].items():
        if not path.startswith("/v1/") or path.startswith(_EXCLUDED):
            continue
        for method in _METHODS:
            if method in methods and not _EXCLUDED_TAGS & set(methods[method].get("tags", ())):
                yield _tool(path, method.upper(), methods[method], schemas)


def _tool(
    path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, object]
) -> RouteTool:
    properties: dict[str, Any] = {}
    required: list[str] = []
    places: dict[str, set[str]] = {"path": set(), "query": set()}
    in_headers: dict[str, str] = {}
    for parameter in operation.get("parameters", ()):
        name, where = parameter["name"], parameter["in"]
        if where == "header":
            if name.lower() == "x-org-name":
                properties[ORG], in_headers[ORG] = _ORG_SCHEMA, "x-org-name"
            elif name.lower() == "if-match":
                properties["if_match"] = parameter["schema"]
                in_headers["if_match"] = "if-match"
            continue
        if where not in places:
            continue
        places[where].add(name)
        properties[name] = {**parameter["schema"]}
        if text := parameter.get("description"):
            properties[name]["description"] = text
        if parameter.get("required"):
            required.append(name)
    body = _body_schema(operation)
    is_whole = False
    if body is not None:
        shape = _resolved(body, schemas)
        is_whole = shape.get("type") != "object" or bool(
            set(shape.get("properties", {})) & set(properties)
        )
        if is_whole:
            properties[_BODY] = body
            required.append(_BODY)
        else:
            properties |= shape.get("properties", {})
            required += shape.get("required", ())
    schema: JsonSchema = {"type": "object", "properties": properties, "required": required}
    if definitions := _definitions(properties, schemas):
        schema["$defs"] = definitions
    return RouteTool(
        operation["operationId"],
        operation.get("description") or operation.get("summary", ""),
        _with_local_references(schema),
        method,
        path,
        frozenset(places["path"]),
        frozenset(places["query"]),
        in_headers,
        body is not None,
        is_whole,
    )


def _body_schema(operation: Mapping[str, Any]) -> JsonSchema | None:
    content = operation.get("requestBody", {}).get("content", {})
    schema: JsonSchema | None = content.get("application/json", {}).get("schema")
    return schema


def _resolved(schema: JsonSchema, schemas: Mapping[str, Any]) -> JsonSchema:
    while reference := schema.get("$ref"):
        schema = schemas[reference.rpartition("/")[2]]
    return schema


def _definitions(value: object, schemas: Mapping[str, object]) -> dict[str, object]:
    """Return the named schemas that a schema refers to, and those that they refer to."""
    found: dict[str, Any] = {}
    pending: list[object] = [value]
    while pending:
        for name in _references(pending.pop()):
            if name not in found:
                found[name] = schemas[name]
                pending.append(schemas[name])
    return found


def _references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(reference := value.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _references(each)


def _with_local_references(value: object) -> Any:
    if isinstance(value, Mapping):
        local = {name: _with_local_references(each) for name, each in value.items()}
        if isinstance(reference := local.get("$ref"), str):
            local["$ref"] = f"#/$defs/{reference.rpartition('/')[2]}"
        return local
    if isinstance(value, list):
        return [_with_local_references(each) for each in value]
    return value


def _query_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
