"""Finds small modules that only one other module imports, and whose place is a matter of choice.

A register imports each of many modules of one kind once. That these are small, and have one
importer, is their design; see docs/decisions/0181-small-modules.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tools import graph
from tools.graph import Module

SMALL = 60
"""Modules with fewer lines are small."""
MERGED = 300
"""A module that takes in another one stays below so many lines."""
REGISTERS = frozenset(
    {
        "caraway.cli.app",
        "caraway_engine.known_faults.mending",
        "caraway_engine.known_faults.names",
        "caraway_engine.known_faults.planning",
        "caraway_engine.scans.tables",
        "caraway_gateway.composition.app",
        "caraway_gateway.metrics.rendering",
        "caraway_management.api.app",
        "caraway_serving.formats.encoders",
    }
)
"""Modules that import each of many modules of one kind: commands, faults, routes, formats."""


@dataclass(frozen=True, slots=True)
class SmallModules:
    """Names of small modules with one importer.

    `free` are neither registered nor part of the face of their package. `mergeable` are those of
    them that fit into their importer, in the same root.
    """

    all: tuple[str, ...]
    free: tuple[str, ...]
    mergeable: tuple[str, ...]


def find(modules: Mapping[str, Module], texts: Mapping[str, str]) -> SmallModules:
    """Return the small modules with one importer.

    `texts` are those that may name modules in a string, which then is loaded when it is needed.
    """
    importers: dict[str, list[str]] = {name: [] for name in modules}
    for module in modules.values():
        for name in module.imports:
            importers[name].append(module.name)
    pairs = {
        name: modules[importers[name][0]]
        for name, module in modules.items()
        if 0 < module.lines < SMALL and len(importers[name]) == 1
    }
    free = {
        name: importer
        for name, importer in pairs.items()
        if not _is_registered(modules[name], importer) and not _is_named(name, texts)
    }
    mergeable = [
        name
        for name, importer in free.items()
        if modules[name].root == importer.root and modules[name].lines + importer.lines < MERGED
    ]
    return SmallModules(tuple(pairs), tuple(free), tuple(mergeable))


def texts() -> dict[str, str]:
    """Return the texts that may name modules: those of modules, and pyproject.toml."""
    found = {module.name: module.path.read_text() for module in graph.modules().values()}
    return {**found, "pyproject.toml": (graph.ROOT / "pyproject.toml").read_text()}


def _is_registered(module: Module, importer: Module) -> bool:
    """Return whether a register imports it, or it is part of the face of a package."""
    is_face = module.path.name == "__init__.py" or module.name.startswith(f"{importer.name}.")
    return is_face or importer.name in REGISTERS


def _is_named(name: str, texts: Mapping[str, str]) -> bool:
    """Return whether a string names it, as entry points do: it has more importers than one."""
    return any(
        f'"{name}:' in text or f'"{name}"' in text for at, text in texts.items() if at != name
    )


def main() -> None:
    """Print the modules that fit into their importers."""
    found = find(graph.modules(), texts())
    print(f"{len(found.all)} with one importer, {len(found.free)} not registered; that fit:")
    for name in found.mergeable:
        print(f"  {name}")


if __name__ == "__main__":
    main()
