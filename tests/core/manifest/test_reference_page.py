import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.manifest import models, shape, values
from caraway_core.manifest.sections import Section, known_keys
from caraway_core.manifest.texts import column_types

PAGE = Path(__file__).parents[3] / "docs/reference/manifest.md"


def sections() -> Iterator[type[Section]]:
    modules = [models.__name__]
    for package in (shape, values):
        modules += [
            f"{package.__name__}.{each.name}" for each in pkgutil.iter_modules(package.__path__)
        ]
    for module in modules:
        for item in vars(importlib.import_module(module)).values():
            if isinstance(item, type) and issubclass(item, Section) and item is not Section:
                yield item


@pytest.mark.parametrize("section", sorted(set(sections()), key=repr))
def test_page_names_every_key(section: type[Section]) -> None:
    page = re.sub(r"^```.*?^```", "", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    written = {part for code in re.findall(r"`([^`]+)`", page) for part in code.split(".")}
    assert set(known_keys(section)) <= written


def test_page_names_every_column_type_family() -> None:
    page = PAGE.read_text()
    for name in ("boolean", "bigint", "decimal(p,s)", "timestamptz", "T[]", "uuid", "blob"):
        assert f"`{name}`" in page
        column_types.arrow_type(name.replace("(p,s)", "(9,2)").replace("T[]", "int[]"))
