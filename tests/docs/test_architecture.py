"""The architecture page names modules that are there, and every component root."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/contributors/architecture.md").read_text()
PACKAGES = {
    package.split("/")[0]: package
    for package in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]["packages"]
}
NAMED = re.compile(rf"\b({'|'.join(PACKAGES)})/([a-z_]+(?:/[a-z_]+)*)")


def test_modules_that_it_names_are_there() -> None:
    named = set(NAMED.findall(PAGE))
    assert len(named) >= 50
    missing = [
        f"{root}/{rest}"
        for root, rest in sorted(named)
        if not (path := ROOT / PACKAGES[root] / rest).is_dir()
        and not path.with_suffix(".py").is_file()
    ]
    assert missing == []


def test_every_component_root_has_a_row() -> None:
    rows = set(re.findall(r"^\| `([a-z]+)/`", PAGE, re.MULTILINE))
    assert rows >= PACKAGES.keys()


@pytest.mark.parametrize("root", ["engine", "scheduler"])
def test_floors_are_those_of_the_import_contract(root: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (
        each for each in contracts["contracts"] if each["name"] == f"Floors of the {root}"
    )
    expected = {
        package.strip(): floor
        for floor, layer in enumerate(reversed(contract["layers"]), 1)
        for package in layer.split("|")
    }
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, re.MULTILINE)
    found = {
        package: int(floor)
        for floor, text in rows
        # Each package begins a part of its row; others are only mentioned.
        for package in re.findall(rf"(?:^|; )`{root}/([a-z_]+)`", text)
    }
    assert found == expected
