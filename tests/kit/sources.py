"""Parses the source files of all components, for tests of coding rules."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from caraway_core.loading.imports import uncollected
from tools import graph

ROOT = Path(__file__).parents[2]
COMPONENTS = tuple(sorted(graph.packages()))


@cache
def modules() -> Mapping[str, ast.Module]:
    """Return every module by its path in the repository."""
    paths = (path for each in COMPONENTS for path in (ROOT / each).rglob("*.py"))
    with uncollected():
        return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(paths)}


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield each node of a module with its innermost function or class."""
    for child in ast.iter_child_nodes(tree):
        name = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{child.name}" if prefix else child.name
        yield name, child
        yield from functions(child, name)
