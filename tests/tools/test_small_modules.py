"""Small modules with one importer: which of them a register, a package or a string holds."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tools import graph, small_modules
from tools.graph import Module
from tools.small_modules import SmallModules


def module(name: str, lines: int, *imports: str, root: str = "core", file: str = "m.py") -> Module:
    return Module(
        name, graph.ROOT / root / Path(*name.split(".")) / file, lines, frozenset(imports)
    )


def found(*modules: Module, texts: Mapping[str, str] | None = None) -> SmallModules:
    return small_modules.find({each.name: each for each in modules}, texts or {})


def test_small_module_of_one_importer_is_counted_and_fits() -> None:
    assert found(module("a", 59), module("b", 100, "a")) == SmallModules(("a",), ("a",), ("a",))


@pytest.mark.parametrize(
    "modules",
    [
        [module("a", 60), module("b", 100, "a")],
        [module("a", 0), module("b", 100, "a")],
        [module("a", 10), module("b", 100, "a"), module("c", 100, "a")],
        [module("a", 10), module("b", 100)],
        [],
    ],
)
def test_others_are_not(modules: list[Module]) -> None:
    assert found(*modules) == SmallModules((), (), ())


@pytest.mark.parametrize(
    ("importer", "is_free"),
    [
        (module("b", 241, "a"), False),
        (module("b", 240, "a"), True),
        (module("b", 10, "a", root="engine"), False),
    ],
)
def test_module_fits_into_a_short_importer_of_its_own_root(importer: Module, is_free: bool) -> None:
    assert found(module("a", 59), importer).mergeable == (("a",) if is_free else ())
    assert found(module("a", 59), importer).free == ("a",)


def test_routes_of_an_app_are_registered() -> None:
    app = next(iter(small_modules.REGISTERS))
    assert found(module("a", 9), module(app, 99, "a")) == SmallModules(("a",), (), ())


def test_face_of_a_package_is_what_others_import() -> None:
    parts = found(module("p.a", 9), module("p", 9, "p.a"))
    assert (parts.all, parts.free) == (("p.a",), ())
    package = found(module("p", 9, file="__init__.py"), module("b", 9, "p"))
    assert (package.all, package.free) == (("p",), ())


@pytest.mark.parametrize(
    ("text", "is_free"), [('"a:Source"', False), ('"a"', False), ('"a.b:c"', True), ("a:", True)]
)
def test_module_that_a_string_names_has_another_importer(text: str, is_free: bool) -> None:
    modules = module("a", 9), module("b", 9, "a")
    assert found(*modules, texts={"pyproject.toml": text}).free == (("a",) if is_free else ())
    assert found(*modules, texts={"a": text}).free == ("a",), "its own text does not count"


def test_registers_exist() -> None:
    assert small_modules.REGISTERS <= graph.modules().keys()
