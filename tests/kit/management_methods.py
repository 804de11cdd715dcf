"""Writes the methods of `caraway.Management` from the OpenAPI document of the service.

Run `python -m tests.kit.management_methods` after a route changed. A test compares the result.
"""

import keyword
import re
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.kit import management

ROOT = Path(__file__).parents[2]
HOME = ROOT / "client" / "caraway" / "management" / "routes"
_VERBS = ("get", "post", "put", "patch", "delete")
_JSON = "application/json"
# Probes, metadata, and pages that only a browser opens; `/v1/apps` is `/v1/projects` again.
_PROGRAMS = re.compile(r"/v1/(?!apps\b)|/auth/token/|/api/oauth/token")
# The service keeps no answers without a credential, and none of runtimes.
_WITHOUT_KEY = re.compile(r"/auth/|/api/oauth/|/v1/(sessions|device-sign-ins)$|.*/queries\b")
_IMPORTS = """
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from caraway.management.calls import (
    UNSET, Call, Content, Document, Nothing, Operations, Text, Unset, members, part,
)
"""
_SUBJECTS = {
    "activity": "organizations", "api_keys": "secrets", "device_sign_in": "accounts",
    "health": "installations", "limits": "organizations", "members": "organizations",
    "metrics": "organizations", "oauth_clients": "oauth", "places": "installations",
    "sessions": "accounts", "tokens": "accounts", "users": "accounts",
}  # fmt: skip
"""The module of each tag that has none of its own."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a method."""

    name: str
    sent_as: str
    type: str
    is_required: bool
    is_nullable: bool

    @property
    def declared(self) -> str:
        if self.is_required:
            return f"{self.name}: {self.type}{' | None' if self.is_nullable else ''}"
        if self.is_nullable:
            return f"{self.name}: {self.type} | Unset | None = UNSET"
        return f"{self.name}: {self.type} | None = None"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the document."""

    verb: str
    path: str
    spec: Mapping[str, Any]
    schemas: Mapping[str, Any]

    @property
    def id(self) -> str:
        text: str = self.spec["operationId"]
        return text

    @property
    def subject(self) -> str:
        tags: list[str] = self.spec.get("tags") or ["others"]
        tag = re.sub(r"\W+", "_", tags[0].lower())
        return _SUBJECTS.get(tag, tag)

    def arguments(self, place: str) -> list[Argument]:
        """Return the arguments of the path, the query or the headers."""
        # None leaves one out: no text stands for null there.
        return [
            replace(
                self._argument(
                    each["name"], each["schema"], is_required=each.get("required", False)
                ),
                is_nullable=False,
            )
            for each in self.spec.get("parameters", ())
            if each["in"] == place and each["name"].lower() not in ("x-org-name", "authorization")
        ]

    @property
    def body(self) -> Mapping[str, Any] | None:
        """Return the schema of the body."""
        content = self.spec.get("requestBody", {}).get("content", {})
        if _JSON not in content:
            return None
        schema = self._resolved(content[_JSON]["schema"])
        # A body that may be left out is an object without members.
        choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
        return self._resolved(choices[0]) if len(choices) == 1 else schema

    def members(self) -> list[Argument]:
        """Return the members of a body that is an object."""
        body = self.body or {}
        required = body.get("required", ())
        return [
            self._argument(name, schema, is_required=name in required)
            for name, schema in body.get("properties", {}).items()
        ]

    @property
    def sends_org(self) -> bool:
        names = [each["name"].lower() for each in self.spec.get("parameters", ())]
        return "x-org-name" in names and "orgid" not in names

    @property
    def answer(self) -> tuple[str, str, str]:
        """Return the type of the answer, the method that sends the call, and the Accept header."""
        good = [text for status, text in self.spec["responses"].items() if status.startswith("2")]
        content = good[0].get("content", {}) if good else {}
        if not content:
            return "Nothing", "_nothing", _JSON
        kind, entry = next(iter(content.items()))
        schema = self._resolved(entry.get("schema", {}))
        if kind.startswith("text/"):
            return "Text", "_text", kind
        if kind == _JSON and schema.get("type", "object") == "object":
            return "Document", "_object", _JSON
        return "Content", "_content", "*/*"

    def _argument(self, name: str, schema: Mapping[str, Any], *, is_required: bool) -> Argument:
        types = self._types(schema)
        # When something is made, null means the same as nothing.
        is_nullable = "None" in types and (is_required or self.verb in ("put", "patch"))
        plain = [each for each in types if each != "None"] or ["Any"]
        return Argument(_python(name), name, " | ".join(plain), is_required, is_nullable)

    def _types(self, schema: Mapping[str, Any]) -> list[str]:
        schema = self._resolved(schema)
        if choices := schema.get("anyOf") or schema.get("oneOf"):
            return list(dict.fromkeys(each for one in choices for each in self._types(one)))
        match schema.get("type"):
            case "string" if schema.get("format") == "date-time":
                return ["datetime", "str"]
            case "array":
                return [f"Sequence[{' | '.join(self._types(schema.get('items', {})))}]"]
            case "object":
                return ["Mapping[str, Any]"]
            case str(name):
                return [_TYPES[name]]
        return ["str"] if "enum" in schema or "const" in schema else ["Any"]

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        return schema


_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def document() -> dict[str, Any]:
    """Return the OpenAPI document of the service."""
    return management.declared_app().openapi()


def operations() -> Iterator[Operation]:
    """Yield the operations that are for programs."""
    found = document()
    schemas = found.get("components", {}).get("schemas", {})
    for path, verbs in found["paths"].items():
        for verb in _VERBS:
            if verb in verbs and _PROGRAMS.match(path):
                yield Operation(verb, path, verbs[verb], schemas)


def modules() -> dict[str, str]:
    """Return the text of each module."""
    groups: dict[str, list[Operation]] = defaultdict(list)
    for each in operations():
        groups[each.subject].append(each)
    texts = {f"{subject}.py": _module(subject, each) for subject, each in groups.items()}
    texts["__init__.py"] = _package(sorted(groups))
    return _formatted(texts)


def main() -> None:
    """Write the modules."""
    texts = modules()
    for old in HOME.glob("*.py"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        (HOME / name).write_text(text)


def _package(subjects: list[str]) -> str:
    home = "caraway.management.routes"
    imports = "\n".join(f"from {home}.{subject} import {_class(subject)}" for subject in subjects)
    bases = "".join(
        f"{_class(subject)}[Document, Text, Content, Nothing],\n" for subject in subjects
    )
    return (
        '"""The operations of the management API, made by `tests.kit.management_methods`."""\n\n'
        "from caraway.management.calls import Content, Document, Nothing, Text\n"
        f"{imports}\n\n\nclass Routes(\n{bases}):\n"
        '    """All operations. The types are those of answers, or awaitables of them."""\n'
    )


def _module(subject: str, of_subject: list[Operation]) -> str:
    words = subject.replace("_", " ")
    return (
        f'"""Operations on {words}, made by `tests.kit.management_methods`."""\n{_IMPORTS}\n\n'
        f"class {_class(subject)}(Operations[Document, Text, Content, Nothing]):\n"
        f'    """Operations on {words}."""\n\n' + "\n".join(map(_method, of_subject))
    )


def _method(operation: Operation) -> str:
    path, query = operation.arguments("path"), operation.arguments("query")
    path.sort(key=lambda each: operation.path.index(f"{{{each.sent_as}}}"))
    headers, members = operation.arguments("header"), operation.members()
    body = operation.body
    takes_body = body is not None and not members
    named = sorted([*members, *query, *headers], key=lambda each: not each.is_required)
    declared = [f"{each.name}: {each.type}" for each in path]
    declared += ["body: Any"] if takes_body else []
    declared += ["*", *(each.declared for each in named)] if named else []
    kind, send, accept = operation.answer
    arguments = [f'"{operation.verb.upper()}"', _path(operation.path, path)]
    if query:
        arguments.append(f"query={_mapping(query)}")
    if takes_body:
        arguments.append("body=body")
    elif body is not None:
        arguments.append(f"body={_members(members)}")
    if headers:
        arguments.append(f"headers={_mapping(headers)}")
    if accept != _JSON:
        arguments.append(f'accept="{accept}"')
    if operation.sends_org:
        arguments.append("names_org=True")
    if operation.verb == "post" and _WITHOUT_KEY.match(operation.path):
        arguments.append("has_key=False")
    signature = "".join(f", {each}" for each in declared)
    return (
        f"    def {operation.id}(self{signature}) -> {kind}:\n"
        f"{_docstring(operation)}"
        f"        return self.{send}(Call({', '.join(arguments)}))\n"
    )


def _docstring(operation: Operation) -> str:
    text = operation.spec.get("description") or operation.spec["summary"] + "."
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    first, _, rest = text.strip().partition("\n")
    lines = [first]
    for paragraph in filter(None, rest.strip().split("\n\n")):
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), 90)]
    if len(lines) == 1 and len(first) > 85:
        first, _, rest = first.partition(". ")
        lines = [f"{first}.", "", *textwrap.wrap(rest, 90)] if rest else textwrap.wrap(first, 85)
    shown = "\n".join(f"        {line}".rstrip() for line in lines).strip()
    last = "" if len(lines) == 1 else "\n        "
    return f'        """{shown}{last}"""\n'


def _path(path: str, arguments: list[Argument]) -> str:
    for each in arguments:
        path = path.replace(f"{{{each.sent_as}}}", f"{{part({each.name})}}")
    return f'f"{path}"' if arguments else f'"{path}"'


def _members(arguments: list[Argument]) -> str:
    required = [each for each in arguments if each.is_required]
    optional = [each for each in arguments if not each.is_required and not each.is_nullable]
    nullable = [each for each in arguments if not each.is_required and each.is_nullable]
    if not optional and not nullable:
        return _mapping(required)
    groups = (("", required), ("optional=", optional), ("nullable=", nullable))
    shown = (f"{name}{_mapping(given)}" for name, given in groups if given)
    return f"members({', '.join(shown)})"


def _mapping(arguments: list[Argument]) -> str:
    return "{" + ", ".join(f'"{each.sent_as}": {each.name}' for each in arguments) + "}"


def _python(name: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def _class(subject: str) -> str:
    return "".join(each.capitalize() for each in subject.split("_")) + "Routes"


def _formatted(texts: Mapping[str, str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_text(text)
        ruff = [sys.executable, "-m", "ruff"]
        config = ["--no-cache", "--config", str(ROOT / "pyproject.toml"), "-q", name]
        rules = ["--fix", "--select", "F401,I"]
        subprocess.run([*ruff, "check", *rules, *config], check=True)
        # Lists that fit into a line, after names were removed that a module does not need.
        short = ["--config", "format.skip-magic-trailing-comma=true"]
        subprocess.run([*ruff, "format", *short, *config], check=True)
        return {file: (folder / file).read_text() for file in texts}


if __name__ == "__main__":
    main()
