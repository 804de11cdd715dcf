"""The graph of the source: its modules, layers and imports."""

import ast

import pytest

from tools import graph, house


def test_imports_are_those_of_modules_and_of_names_in_them() -> None:
    source = """
import os
import caraway_core.ids
from caraway_core import tasks
from caraway_core.errors import CarawayError

def later():
    from caraway_core.manifest import names, Manifest
"""
    known = frozenset(
        f"caraway_core.{name}" for name in ("ids", "tasks", "errors", "manifest", "manifest.names")
    )
    assert set(graph._imports(ast.parse(source), known)) == known


def test_layers_are_listed_without_their_marks() -> None:
    layers = graph.layers({"layers": ["a", "(b) | c", "d : e"]})
    assert layers == [["a"], ["b", "c"], ["d", "e"]]


def test_every_root_has_a_package() -> None:
    assert graph.packages()["operator"] == "caraway_operator"
    assert graph.packages()["client"] == "caraway"


def test_no_modules_import_each_other() -> None:
    assert graph.circles() == []


def test_a_circle_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    modules = {
        name: graph.Module(name, graph.ROOT / f"{name}.py", 1, frozenset(others))
        for name, others in imports.items()
    }
    monkeypatch.setattr(graph, "modules", lambda: modules)
    assert graph.circles() == [{"a", "b", "c"}]


def test_few_modules_are_at_the_root_of_a_layered_package() -> None:
    containers = [name for each in graph.contracts() for name in each.get("containers", [])]
    assert len(containers) >= 11
    assert {name: count for name in containers if (count := graph.loose(name)) > 8} == {}


@pytest.mark.full
def test_every_point_of_the_review_is_counted() -> None:
    rows = house.table()
    assert len(rows) >= 25
    assert all(len(row) == 4 and all(row[:3]) for row in rows)
