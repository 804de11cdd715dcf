"""Rules between the keys of functions, and the values that they become."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from caraway_core.errors import Problem
from caraway_core.loading import registry
from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.rules import function_types
from caraway_core.manifest.shape import functions as shapes
from caraway_core.manifest.texts import scalars
from caraway_core.manifest.values.declared_tools import RESERVED_TOOLS, DeclaredTool
from caraway_core.sqltext import builtin_functions, function_bodies, lexer
from caraway_core.sqltext.sql_functions import (
    FunctionParameter,
    ReturnedColumn,
    SqlCast,
    SqlFunction,
    Volatility,
)

_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_TYPES = {"string": "text", "integer": "bigint", "number": "double", "boolean": "boolean"}
_HTTP = ("http", "https", "wasm")


def function(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of a function, apart from its body."""
    content = document.value
    origin = str(content.get("from", "sql")).strip()
    kind = origin.partition(":")[0].lower()
    if kind in _HTTP:
        message = (
            "a function is `from: sql`; a service can be a tool `from: https://...`, and what it "
            "answers a dataset"
        )
        yield document.problem(("from",), message)
    elif origin.lower() != "sql":
        yield document.problem(("from",), registry.unknown("kind of function", origin, ("sql",)))
    if content.get("params"):
        yield document.problem(("params",), "a function in SQL has no params")
    if (content.get("body") is None) is (content.get("body_ref") is None):
        both = content.get("body") is not None
        message = "'body' and 'body_ref' mean the same; keep one" if both else (
            "the function has neither 'body' nor 'body_ref'"
        )  # fmt: skip
        yield document.problem(("body_ref",) if both else (), message)
    name = str(content.get("name", "")).lower()
    if name in builtin_functions.NAMES:
        message = f"'{name}' is a function of SQL; choose another name"
        yield document.problem(("name",), message)
    elif content.get("as_tool") is not False and name in RESERVED_TOOLS:
        message = f"'{name}' is the name of a built-in tool; choose another, or `as_tool: false`"
        yield document.problem(("name",), message)
    yield from _signature(document)


def _signature(document: Document) -> Iterator[Problem]:
    signature = document.value.get("signature")
    signature = signature if isinstance(signature, dict) else {}
    is_table, returns = document.value.get("kind") == "table", signature.get("returns")
    if is_table and isinstance(returns, str):
        message = "a table function returns a list of columns with 'name' and 'type'"
        yield document.problem(("signature", "returns"), message)
    elif not is_table and isinstance(returns, list):
        message = "a scalar function returns one type, such as double; or write `kind: table`"
        yield document.problem(("signature", "returns"), message)
    elif not is_table and returns is None:
        yield document.problem(
            ("signature",), "the key 'returns' is missing: the type of the value"
        )
    yield from _named(document, ("signature", "returns"), returns, "column")
    yield from _named(document, ("signature", "args"), signature.get("args"), "parameter")
    if isinstance(returns, str):
        yield from _type(document, ("signature", "returns"), returns)
    has_default = False
    for index, each in enumerate(_entries(signature.get("args"))):
        at: Location = ("signature", "args", index)
        word = str(each.get("name", "")).upper()
        if word in function_bodies.RESERVED:
            message = f"'{each['name']}' is a keyword of SQL; choose another name"
            yield document.problem((*at, "name"), message)
        default = each.get("default")
        if isinstance(default, dict | list):
            message = "must be a text, a number, true or false"
            yield document.problem((*at, "default"), message)
        if default is not None and each.get("required") is True:
            message = "a parameter with a default is not required; remove one of the two"
            yield document.problem((*at, "required"), message)
        is_optional = default is not None or each.get("required") is False
        if has_default and not is_optional:
            message = "parameters with a default come last"
            yield document.problem((*at, "name"), message)
        has_default |= is_optional


def _named(document: Document, at: Location, entries: object, what: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, each in enumerate(_entries(entries)):
        name = str(each.get("name", "")).lower()
        if name in seen:
            yield document.problem((*at, index, "name"), f"the {what} '{name}' is declared twice")
        seen.add(name)
        if isinstance(type_ := each.get("type"), str):
            yield from _type(document, (*at, index, "type"), type_)


def _type(document: Document, at: Location, text: str) -> Iterator[Problem]:
    try:
        function_types.cast(text)
    except ValueError as exc:
        yield document.problem(at, str(exc))


def _entries(value: object) -> Sequence[Mapping[str, object]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else ()


def declared(shape: shapes.FunctionSection, body: str) -> SqlFunction:
    """Build a function whose keys were checked."""
    returns = shape.signature.returns
    columns = () if isinstance(returns, str) else returns or ()
    parameters = [_parameter(each) for each in shape.signature.args]
    return SqlFunction(
        name=shape.name.lower(),
        parameters=tuple(parameters),
        body=body,
        returns=function_types.cast(returns) if isinstance(returns, str) else None,
        columns=tuple(
            ReturnedColumn(each.name, function_types.cast(each.type)) for each in columns
        ),
        is_table=shape.kind == "table",
        description=shape.description,
        volatility=shape.volatility or _volatility(body, is_table=shape.kind == "table"),
        as_tool=shape.as_tool,
        metadata=shape.metadata,
    )


def of_tool(tool: DeclaredTool) -> SqlFunction:
    """Return a tool `from: sql` as a table function; its parameters keep their order."""
    properties: Mapping[str, Mapping[str, Any]] = tool.parameters["properties"]
    parameters: list[FunctionParameter] = []
    for name, each in properties.items():
        default: str | None = None
        if name not in tool.parameters["required"]:
            given = each.get("default")
            default = "NULL" if given is None else _literal(given)
        type_ = _TYPES.get(str(each["type"]))
        cast = SqlCast(str(each["type"])) if type_ is None else function_types.cast(type_)
        parameters.append(FunctionParameter(name, cast, default, each.get("description"), each))
    return SqlFunction(
        name=tool.name.lower(),
        parameters=tuple(parameters),
        body=tool.sql,
        is_table=True,
        description=tool.description,
        volatility=_volatility(tool.sql, is_table=True),
        as_tool=False,
    )


def _parameter(section: shapes.FunctionArgumentSection) -> FunctionParameter:
    default: str | None = None
    if section.default is not None:
        default = _literal(section.default)
    elif section.required is False:
        default = "NULL"
    return FunctionParameter(
        section.name.lower(),
        function_types.cast(section.type),
        default,
        section.description,
        function_types.schema(section.type, section.description, scalars.plain(section.default)),
    )


def _literal(value: object) -> str:
    text = scalars.written(value)
    if isinstance(value, bool):
        return text.upper()
    if not isinstance(value, str) and _NUMBER.fullmatch(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _volatility(body: str, *, is_table: bool) -> Volatility:
    if function_bodies.called(body, builtin_functions.RANDOM):
        return "volatile"
    return "stable" if is_table or _of_the_time(body) else "immutable"


def _of_the_time(body: str) -> str | None:
    """Return the first function of the time that a body names, or None."""
    words = (token.text.lower() for token in lexer.significant(body))
    return next((word for word in words if word in builtin_functions.STABLE), None)


def false_volatility(made: SqlFunction) -> str:
    """Return why a function contradicts its declaration to the optimizer; empty if it is."""
    if made.volatility == "volatile":
        return ""
    if (name := function_bodies.called(made.body, builtin_functions.RANDOM)) is not None:
        return f"the body calls {name}(), so the function is volatile"
    if made.volatility == "immutable" and (name := _of_the_time(made.body)) is not None:
        return f"the body calls {name}(), so the function is not more than stable"
    return ""
