"""Each entry point can be imported where its extra alone is installed."""

import functools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata

import pytest

from caraway_core.loading.declarations import Declaration
from caraway_core.loading.registry import extra_of
from tests.kit.extras import EXTRAS, FOR_DEVELOPERS, absent_modules, brought

ALONE = """
import importlib, json, sys, sysconfig
from importlib.machinery import PathFinder

absent, wanted = json.load(sys.stdin)
installed = sysconfig.get_path("purelib")


class Present(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and name in absent:
            path = [each for each in sys.path if each != installed]
        return PathFinder.find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Present
failed = []
for each in wanted:
    module, _, attribute = each.partition(":")
    try:
        getattr(importlib.import_module(module), attribute or "__name__")
    except ImportError as exc:
        failed.append(f"{each} needs {exc.name}")
print(json.dumps(failed))
"""
LIGHT = """
import importlib, json, sys

for each in sys.argv[1:]:
    importlib.import_module(each)
roots = {each.partition(".")[0] for each in sys.modules}
known = {*sys.stdlib_module_names, "caraway_ai", "caraway_core", "caraway_plugins"}
print(json.dumps([each for each in sorted(roots - known) if not each.startswith("_")]))
"""
OF_CLIENT = ["caraway", "caraway.cli:main", "caraway_core.loading.registry"]


@functools.cache
def entry_points() -> Sequence[tuple[str, str]]:
    """Return the extra and the target of each entry point, and the target of its declaration."""
    return [*_entry_points()]


def _entry_points() -> Iterator[tuple[str, str]]:
    for each in metadata.distribution("caraway").entry_points:
        if each.group == "sqlalchemy.dialects":
            yield "sqlalchemy", each.value
        elif each.group != "console_scripts":
            yield extra_of(each), each.value.partition(" [")[0]
            if isinstance(declared := each.load(), Declaration) and declared.target:
                yield extra_of(each), declared.target


def imported(extra: str, wanted: list[str]) -> list[str]:
    """Return what cannot be imported with an extra, and the package that it lacks."""
    ran = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60,
        input=json.dumps([sorted(absent_modules(extra)), wanted]),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    failed: list[str] = json.loads(ran.stdout)
    return failed


@pytest.mark.parametrize("extra", ["", *sorted(set(EXTRAS) - FOR_DEVELOPERS)])
def test_what_an_extra_is_for_needs_no_other_extra(extra: str) -> None:
    targets = [value for named, value in entry_points() if named == extra]
    assert imported(extra, OF_CLIENT + targets) == []


def test_each_extra_brings_what_it_needs_to_start() -> None:
    of_the_client = {"", "management", "operator", "runtime", "sqlalchemy"} | FOR_DEVELOPERS
    for extra in set(EXTRAS) - of_the_client:
        assert brought("runtime") <= brought(extra), extra


def test_a_module_that_is_not_installed_is_found() -> None:
    of_delta = [value for named, value in entry_points() if named == "delta"]
    missing = imported("runtime", of_delta)
    assert missing and all(said.endswith("needs deltalake") for said in missing)


def test_declarations_need_the_client_library_alone() -> None:
    groups = ("sources", "model_providers", "embedders", "rerankers")
    modules = {
        each.value.partition(":")[0]
        for each in metadata.distribution("caraway").entry_points
        if each.group in {f"caraway.{group}" for group in groups}
    }
    assert imported("", sorted(modules)) == []
    ran = subprocess.run(
        [sys.executable, "-c", LIGHT, *sorted(modules)], capture_output=True, text=True, timeout=60
    )
    assert json.loads(ran.stdout) == [], ran.stderr


def test_each_extra_of_an_entry_point_exists() -> None:
    assert {named for named, _ in entry_points()} <= set(EXTRAS)
