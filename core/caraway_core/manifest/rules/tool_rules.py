"""Rules between the keys of tools, and the values that they become."""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from caraway_core.errors import ParametersError, Problem
from caraway_core.loading import registry
from caraway_core.manifest import sections
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.shape import tools as shapes
from caraway_core.manifest.shape.functions import SQL_NAME
from caraway_core.manifest.texts import scalars, units
from caraway_core.manifest.values.declared_tools import (
    BUILTIN_TOOLS,
    OTHER_NAMES,
    RESERVED_TOOLS,
    DeclaredTool,
    ToolKind,
)
from caraway_core.sqltext import builtin_functions, placeholders

PARAMS: Mapping[ToolKind, tuple[str, ...]] = {
    "builtin": ("table_allowlist",),
    "sql": (),
    "http": ("url", "method", "headers", "auth_token", "timeout"),
    "mcp": ("mcp_args", "mcp_headers", "mcp_auth_token", "timeout"),
    "websearch": ("engine", "perplexity_auth_token", "endpoint", "model", "timeout"),
}
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
_IN_URL = re.compile(r"\{(\w+)\}")


def kind_of(origin: str) -> tuple[ToolKind, str]:
    """Return the halves of the `from` of a tool.

    Raises:
        ValueError: it names no kind of tool.
    """
    kind, _, target = origin.strip().partition(":")
    kind = kind.strip().lower()
    for tool_kind in PARAMS:
        if kind == tool_kind:
            return tool_kind, target.strip()
    if kind == "https":
        return "http", origin.strip()
    raise ValueError(registry.unknown("kind of tool", kind, PARAMS))


def tool(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of a tool."""
    content = document.value
    try:
        kind, target = kind_of(str(content.get("from", "")))
    except ValueError as exc:
        yield document.problem(("from",), str(exc))
        return
    if content.get("as_sql") is True:
        yield from _as_sql(document, kind)
    yield from _params(document, kind)
    if kind != "mcp" and content.get("env"):
        yield document.problem(("env",), "only an MCP server that is started has an environment")
    if kind not in ("sql", "http") and content.get("parameters"):
        message = "the tool has parameters of its own; remove 'parameters'"
        yield document.problem(("parameters",), message)
    if kind != "sql" and content.get("sql"):
        yield document.problem(("sql",), "only a tool `from: sql` has a statement")
    if kind in ("sql", "http", "websearch") and content.get("name") in RESERVED_TOOLS:
        message = f"'{content['name']}' is the name of a built-in tool; choose another"
        yield document.problem(("name",), message)
    match kind:
        case "builtin":
            yield from _builtin(document, target)
        case "sql":
            yield from _sql(document, target)
        case "http":
            yield from _http(document, target)
        case "mcp":
            yield from _mcp(document, target)
        case "websearch":
            yield from _web_search(document, target)


def declared(shape: shapes.ToolSection) -> DeclaredTool:
    """Build a tool whose keys were checked."""
    kind, target = kind_of(shape.from_)
    if kind == "http":
        target = _url(target, shape.params)
    return DeclaredTool(
        name=shape.name,
        kind=kind,
        target=target,
        description=shape.description,
        sql=shape.sql or "",
        parameters=_schema(shape.parameters) if kind in ("sql", "http") else {},
        groups=tuple(shape.groups),
        params=shape.params,
        env=shape.env,
        as_sql=shape.as_sql,
    )


def _schema(parameters: Mapping[str, shapes.ToolParameterSection]) -> Mapping[str, object]:
    properties: dict[str, object] = {}
    required: list[str] = []
    for name, each in parameters.items():
        written = sections.written(each)
        written.pop("required", None)
        properties[name] = scalars.plain(written)
        if each.required or (each.required is None and each.default is None):
            required.append(name)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _as_sql(document: Document, kind: ToolKind) -> Iterator[Problem]:
    """Yield why a tool cannot be called in SQL."""
    if kind != "sql":
        why = (
            "a built-in tool reads what a statement can read without it"
            if kind == "builtin"
            else "a statement may be planned and run several times, so it must not call a "
            "service; load what the service answers as a dataset"
        )
        message = f"only a tool `from: sql` can be called in SQL: {why}"
        yield document.problem(("as_sql",), message)
        return
    name = str(document.value.get("name", ""))
    if not re.fullmatch(SQL_NAME, name):
        message = f"'{name}' is not a name in SQL, which `as_sql` needs; write '_' for '-'"
        yield document.problem(("name",), message)
    elif name.lower() in builtin_functions.NAMES:
        message = f"'{name}' is a function of SQL, so it cannot be called there; choose another"
        yield document.problem(("name",), message)
    for parameter, each in _mapping(document.value.get("parameters")).items():
        if _mapping(each).get("type") == "object":
            message = "an object cannot be an argument in SQL; remove `as_sql`"
            yield document.problem(("parameters", parameter, "type"), message)


def _params(document: Document, kind: ToolKind) -> Iterator[Problem]:
    params = document.value.get("params")
    for name in params if isinstance(params, dict) else ():
        if name not in PARAMS[kind]:
            message = registry.unknown(f"{kind} param", str(name), PARAMS[kind])
            yield document.problem(("params", name), message)


def _builtin(document: Document, target: str) -> Iterator[Problem]:
    if (name := OTHER_NAMES.get(target)) is not None:
        yield document.problem(("from",), f"'{target}' is called '{name}' here; write that name")
    elif target == "websearch":
        yield document.problem(("from",), "write `from: websearch`, with the params of its engine")
    elif target not in BUILTIN_TOOLS:
        yield document.problem(("from",), registry.unknown("built-in tool", target, BUILTIN_TOOLS))
    elif document.value.get("name") != target:
        message = f"a built-in tool keeps its name; write `name: {target}`"
        yield document.problem(("name",), message)
    elif target != "list_datasets" and document.value.get("params"):
        yield document.problem(("params",), f"the tool '{target}' has no params")


def _sql(document: Document, target: str) -> Iterator[Problem]:
    if target:
        message = "write `from: sql`, and the statement under 'sql'"
        yield document.problem(("from",), message)
    sql = document.value.get("sql")
    if not isinstance(sql, str) or not sql.strip():
        yield document.problem(("from",), "the key 'sql' with the statement is missing")
        return
    named = set(_mapping(document.value.get("parameters")))
    try:
        names = placeholders.find(sql).names
    except ParametersError as exc:
        yield document.problem(("sql",), exc.message)
        return
    for name in sorted(names - named):
        message = f"the statement has the placeholder '{name}', which 'parameters' lacks"
        yield document.problem(("sql",), message)
    for name in sorted(named - names):
        message = f"the statement has no placeholder '${name}'"
        yield document.problem(("parameters", name), message)


def _http(document: Document, target: str) -> Iterator[Problem]:
    params = _mapping(document.value.get("params"))
    url = _url(target, params)
    if not _is_address(_IN_URL.sub("x", url)):
        message = "write `from: https://host/path`, or the address in the param 'url'"
        where = ("params", "url") if "url" in params else ("from",)
        yield document.problem(where, message)
    method = str(params.get("method", "GET"))
    if method.upper() not in _METHODS:
        message = f"'{method}' is not one of: {', '.join(_METHODS)}"
        yield document.problem(("params", "method"), message)
    for name in sorted(set(_IN_URL.findall(url)) - set(_mapping(document.value.get("parameters")))):
        message = f"the address has '{{{name}}}', which 'parameters' lacks"
        yield document.problem(("from",), message)
    yield from _timeout(document, params)


def _mcp(document: Document, target: str) -> Iterator[Problem]:
    params = _mapping(document.value.get("params"))
    if not target:
        message = "write `from: mcp:https://host/mcp`, or `from: mcp:<command>`"
        yield document.problem(("from",), message)
    is_web = target.startswith(("http://", "https://"))
    for name in ("mcp_args",) if is_web else ("mcp_headers", "mcp_auth_token"):
        if name in params:
            message = f"a server that is {'reached by HTTP' if is_web else 'started'} has none"
            yield document.problem(("params", name), message)
    if is_web and document.value.get("env"):
        message = "only an MCP server that is started has an environment"
        yield document.problem(("env",), message)
    yield from _timeout(document, params)


def _web_search(document: Document, target: str) -> Iterator[Problem]:
    params = _mapping(document.value.get("params"))
    if target:
        message = "write `from: websearch`, and the engine in the param 'engine'"
        yield document.problem(("from",), message)
    if (engine := params.get("engine", "perplexity")) != "perplexity":
        message = f"'{engine}' is not one of: perplexity"
        yield document.problem(("params", "engine"), message)
    if params.get("endpoint") is None and not params.get("perplexity_auth_token"):
        message = "the param 'perplexity_auth_token' is missing, the key of the search engine"
        yield document.problem(("params",), message)
    if params.get("endpoint") is not None and not _is_address(str(params["endpoint"])):
        message = "must be an address, such as https://api.perplexity.ai"
        yield document.problem(("params", "endpoint"), message)
    yield from _timeout(document, params)


def _timeout(document: Document, params: Mapping[str, object]) -> Iterator[Problem]:
    if params.get("timeout") is None:
        return
    try:
        if units.seconds(params["timeout"]) <= 0:
            raise ValueError("must be more than 0")
    except ValueError as exc:
        yield document.problem(("params", "timeout"), str(exc))


def _url(target: str, params: Mapping[str, object]) -> str:
    url = target or str(params.get("url", ""))
    return f"http:{url}" if url.startswith("//") else url


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
