"""Other names of keys, as manifests of the emulated runtime write them."""

from collections.abc import Mapping
from dataclasses import replace

from caraway_core.manifest.documents.document import Document, DocumentNode, Location

_KEYS: Mapping[str, Mapping[Location, str]] = {
    "datasets": {("mode",): "access"},
    "models": {("params", "spice_tools"): "tools"},
}


def renamed(section: str, document: Document) -> Document:
    """Return a component with our names of its keys; lines stay those of the file."""
    root = document.root
    for location, name in _KEYS.get(section, {}).items():
        root = _renamed(root, location, name)
    return replace(document, root=root)


def _renamed(node: DocumentNode, location: Location, name: str) -> DocumentNode:
    """Rename the key at a location, unless the other name is used as well."""
    step, below = location[0], location[1:]
    if not isinstance(node.value, dict) or step not in node.children:
        return node
    line, child = node.children[step]
    if below:
        child, key = _renamed(child, below, name), step
    elif node.value.get(name) is not None:
        return node
    else:
        key = name
    value = {old: item for old, item in node.value.items() if old not in (step, key)}
    children = {old: item for old, item in node.children.items() if old not in (step, key)}
    return replace(
        node, value={**value, key: child.value}, children={**children, key: (line, child)}
    )
