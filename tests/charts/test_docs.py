"""Links, values and rules in the pages about operating exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.kit import helm

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs" / "operate").glob("*.md")),
    ROOT / "docs" / "reference" / "chart.md",
    helm.CHART / "README.md",
]
SCHEMA: dict[str, Any] = json.loads((helm.CHART / "values.schema.json").read_text())
SECTIONS = (
    "global", "image", "operator", "management", "cluster", "ingress", "gateway", "dashboard",
    "tests",
)  # fmt: skip


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in titles}


def has(path: str) -> bool:
    """Return whether the schema has a value."""
    at = SCHEMA
    for name in path.split("."):
        properties = at.get("properties", {})
        if name not in properties:
            # A map with free keys, or a value that Kubernetes checks.
            return at.get("additionalProperties") is not False
        at = properties[name]
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_values_are_those_of_the_chart(page: Path) -> None:
    said = re.findall(rf"(?<![\w./-])((?:{'|'.join(SECTIONS)})(?:\.[A-Za-z]+)+)", page.read_text())
    # An API group and names of files look like values.
    values = set(said) - {"gateway.networking.k", "management.md", "management.db"}
    assert {value for value in values if not has(value)} == set()
