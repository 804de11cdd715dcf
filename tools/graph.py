"""The modules of the source, and the imports between them."""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_IMPORTED = re.compile(r"^\s*(?:from|import) (caraway(?:_\w+)?)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the source; `imports` are modules of ours, also those of `TYPE_CHECKING`."""

    name: str
    path: Path
    lines: int
    imports: frozenset[str]

    @property
    def root(self) -> str:
        """The component root, such as `scheduler`."""
        return self.path.relative_to(ROOT).parts[0]


@cache
def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def packages() -> dict[str, str]:
    """Return the package of each component root."""
    paths = project()["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return {path.split("/")[0]: path.split("/")[1] for path in paths}


def contracts() -> list[dict[str, Any]]:
    """Return the import contracts."""
    found: list[dict[str, Any]] = project()["tool"]["importlinter"]["contracts"]
    return found


def layers(contract: Mapping[str, Any]) -> list[list[str]]:
    """Return the layers of a contract from the highest on, without the marks of optional ones."""
    return [
        [name.strip().strip("()") for name in re.split("[|:]", layer)]
        for layer in contract["layers"]
    ]


def paths_of(root: str) -> list[Path]:
    """Return the modules of a root that people write."""
    found = (ROOT / root / packages()[root]).rglob("*.py")
    return sorted(path for path in found if not path.name.endswith("_pb2.py"))


@cache
def modules() -> dict[str, Module]:
    """Return all modules of the source by name."""
    paths: dict[str, Path] = {}
    for root in packages():
        for path in paths_of(root):
            parts = path.relative_to(ROOT / root).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    known = frozenset(paths)
    found = {}
    for name, path in sorted(paths.items()):
        source = path.read_text()
        imports = frozenset(_imports(ast.parse(source), known))
        found[name] = Module(name, path, source.count("\n"), imports - {name})
    return found


def _imports(tree: ast.Module, known: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in known:
                    yield full
                elif node.module in known:
                    yield node.module


def circles() -> list[frozenset[str]]:
    """Return the groups of modules that import each other, by Tarjan's algorithm."""
    graph = {name: module.imports for name, module in modules().items()}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(frozenset(stack[at:]))
            del stack[at:]

    for name in graph:
        if name not in index:
            visit(name)
    return found


def root_imports() -> dict[str, set[str]]:
    """Return the roots that each root imports."""
    by_package = {package: root for root, package in packages().items()}
    return {
        root: {
            by_package[package]
            for path in paths_of(root)
            for package in _IMPORTED.findall(path.read_text())
            if by_package[package] != root
        }
        for root in packages()
    }


def loose(package: str) -> int:
    """Return the number of modules directly in a package, without its `__init__`."""
    depth = package.count(".") + 1
    return sum(
        1
        for name, module in modules().items()
        if name.startswith(f"{package}.")
        and name.count(".") == depth
        and module.path.name != "__init__.py"
    )
