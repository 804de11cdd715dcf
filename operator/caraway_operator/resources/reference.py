"""The reference of all fields. `python -m caraway_operator.resources.reference PAGE` writes it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from caraway_operator import naming
from caraway_operator.resources import crd, quantities
from caraway_operator.resources.pods import Pods
from caraway_operator.resources.schemas import structural

MARK = "<!-- Made by python -m caraway_operator.resources.reference; edit what is above. -->\n"
_COMPONENTS = (naming.HEAD, naming.SCHEDULER, naming.EXECUTOR, naming.STATE)
_HEADER = "| Field | Type | Default | Meaning |\n|---|---|---|---|\n"

Row = tuple[str, dict[str, Any]]


def text() -> str:
    """Return the generated part of the page."""
    cluster = _schema(crd.cluster())
    shared = structural(Pods)["properties"]
    parts = [
        "\n## `CarawayCluster`: `spec`\n\n" + _table(_spec_rows(cluster, shared)),
        "\n## Of every component\n\n"
        "Fields of `spec.head`, `spec.scheduler`, `spec.executor` and `spec.state`.\n\n"
        + _table(_rows({"properties": shared}, "")),
        "\n## `CarawayCluster`: `status`\n\n"
        + _table(_rows(cluster["properties"]["status"], "status")),
        "\n## `CarawayLimits`: `spec`\n\n"
        + _table(_rows(_schema(crd.limits())["properties"]["spec"], "spec")),
        "\n## Rules between fields\n\nThe API server refuses what breaks one of these.\n\n"
        "| Field | Rule |\n|---|---|\n" + "".join(_rules(cluster, "")),
    ]
    return "".join(parts)


def page(before: str) -> str:
    """Return a page with its generated part anew."""
    return before.partition(MARK)[0] + MARK + text()


def _schema(definition: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def _spec_rows(cluster: dict[str, Any], shared: dict[str, Any]) -> Iterator[Row]:
    """Yield the fields of a cluster, without those that every component has."""
    components = tuple(f"spec.{component}." for component in _COMPONENTS)
    for path, node in _rows(cluster["properties"]["spec"], "spec"):
        field = path.split(".")[2] if path.startswith(components) else None
        if field not in shared:
            yield path, node


def _rows(node: dict[str, Any], path: str) -> Iterator[Row]:
    for name, child in node.get("properties", {}).items():
        at = f"{path}.{name}" if path else name
        yield at, {**child, "required": name in node.get("required", ())}
        yield from _rows(child, at)
        yield from _rows(child.get("items", {}), f"{at}[]")


def _table(rows: Iterator[Row]) -> str:
    lines = [
        f"| `{path}` | {_kind(node)} | {_default(node)} | {_meaning(node)} |\n"
        for path, node in rows
    ]
    return _HEADER + "".join(lines)


def _kind(node: dict[str, Any]) -> str:
    if node.get("pattern") == quantities.PATTERN:
        return "quantity"
    if "enum" in node:
        return ", ".join(f"`{each}`" for each in node["enum"])
    match node["type"]:
        case "integer" if "minimum" in node:
            return f"{node['minimum']} to {node['maximum']}"
        case "array":
            return f"list of {_kind(node['items'])}"
        case "object" if "additionalProperties" in node:
            return f"map of {_kind(node['additionalProperties'])}"
        case "string":
            return "text"
    return str(node["type"])


def _default(node: dict[str, Any]) -> str:
    if node.get("required"):
        return "required"
    default = node.get("default")
    return "" if default in (None, {}) else f"`{json.dumps(default)}`"


def _meaning(node: dict[str, Any]) -> str:
    return str(node.get("description", "")).replace("|", "\\|").replace("\n", " ")


def _rules(node: dict[str, Any], path: str) -> Iterator[str]:
    for rule in node.get("x-kubernetes-validations", []):
        yield f"| `{path or 'metadata.name'}` | {rule['message']} |\n"
    for name, child in node.get("properties", {}).items():
        yield from _rules(child, f"{path}.{name}" if path else name)


def main(arguments: list[str]) -> int:
    """Make the generated part of a page anew."""
    file = Path(arguments[0])
    file.write_text(page(file.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
