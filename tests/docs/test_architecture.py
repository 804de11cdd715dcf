"""The architecture page is generated from the contracts and the code, and names existing parts.

`CARAWAY_WRITE_DOCS=1` writes its tables and its picture. A share of the source is written again
once it is wrong by more than two points.
"""

import ast
import re

import pytest

from tests.kit import written_docs
from tools import graph

PAGE = "contributors/architecture.md"
TEXT = (graph.ROOT / "docs" / PAGE).read_text()
FOLDERS = {root: f"{root}/{package}" for root, package in graph.packages().items()}
NAMED = re.compile(rf"\b({'|'.join(FOLDERS)})/([a-z_]+(?:/[a-z_]+)*)")
LAYERED = {
    "Layers of the engine": "engine",
    "Layers of the gateway": "gateway",
    "Layers of models and search": "assist",
    "Layers of acceleration": "acceleration",
    "Layers of the scheduler": "scheduler",
    "Layers of dispatch": "scheduler/dispatch",
    "Layers of the executor": "executor",
    "Layers of the operator": "operator",
    "Layers of core": "core",
    "Layers of the manifest": "core/manifest",
    "Layers of the client": "client",
    "Layers of the management service": "management",
}
_POINTS = 2


def test_modules_that_it_names_are_there() -> None:
    named = set(NAMED.findall(TEXT))
    assert len(named) >= 50
    missing = [
        f"{root}/{rest}"
        for root, rest in sorted(named)
        if not (path := graph.ROOT / FOLDERS[root] / rest).is_dir()
        and not path.with_suffix(".py").is_file()
    ]
    assert missing == []


def test_the_picture_is_that_of_the_contract() -> None:
    (contract,) = (each for each in graph.contracts() if each["name"].startswith("Packages import"))
    by_package = {package: root for root, package in graph.packages().items()}
    layers = [[by_package[package] for package in layer] for layer in graph.layers(contract)]
    shares = _shares()
    assert sorted(root for layer in layers for root in layer) == sorted(FOLDERS)
    rows = ["  ".join(f"[{root} {shares[root]} %]" for root in layer) for layer in layers]
    width = max(map(len, rows))
    picture = f"\n{'▼'.center(width).rstrip()}\n".join(row.center(width).rstrip() for row in rows)
    written_docs.check(PAGE, "picture", f"```\n{picture}\n```")


def test_the_table_of_roots_is_that_of_the_code() -> None:
    imports, shares = graph.root_imports(), _shares()
    rows: list[tuple[str, ...]] = [("root", "holds", "imports", "of the source")]
    for root in sorted(FOLDERS, key=lambda each: (-len(imports[each]), each)):
        others = ", ".join(sorted(imports[root])) or "nothing of Caraway"
        package = graph.ROOT / FOLDERS[root] / "__init__.py"
        rows.append((f"`{root}/`", _sentence(package.read_text()), others, f"{shares[root]} %"))
    written_docs.check(PAGE, "roots", written_docs.table(*rows))


@pytest.mark.parametrize("name", LAYERED)
def test_the_layers_are_those_of_the_contract(name: str) -> None:
    (contract,) = (each for each in graph.contracts() if each["name"] == name)
    place = LAYERED[name]
    root, _, rest = place.partition("/")
    folder = graph.ROOT / FOLDERS[root] / rest
    layers = graph.layers(contract)
    rows: list[tuple[str, ...]] = [("layer", "package", "holds")]
    for number, layer in zip(range(len(layers), 0, -1), layers, strict=True):
        for part in sorted(layer):
            path = folder / part / "__init__.py"
            path = path if path.exists() else folder / f"{part}.py"
            rows.append((str(number), f"`{place}/{part}`", _sentence(path.read_text())))
    written_docs.check(PAGE, place.replace("/", "-"), written_docs.table(*rows))


def _sentence(source: str) -> str:
    """Return the first paragraph of a docstring."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    return " ".join(docstring.split("\n\n")[0].split()).replace("|", r"\|")


def _shares() -> dict[str, int]:
    """Return the share of each root in percent; that of the page if it is nearly right."""
    lines = {
        root: sum(path.read_bytes().count(b"\n") for path in graph.paths_of(root))
        for root in FOLDERS
    }
    total = sum(lines.values())
    shares = {root: round(100 * count / total) for root, count in lines.items()}
    for root, written in re.findall(r"^\| `(\w+)/` \|.*\| (\d+) % \|$", TEXT, re.MULTILINE):
        if root in shares and abs(shares[root] - int(written)) <= _POINTS:
            shares[root] = int(written)
    return shares


def test_a_share_is_written_again_once_it_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    true = _shares()["scheduler"]
    page = re.sub(r"(`scheduler/` .*\| )\d+( % \|)", rf"\g<1>{true + 10}\2", TEXT)
    assert page != TEXT
    monkeypatch.setitem(globals(), "TEXT", page)
    assert abs(_shares()["scheduler"] - true) <= _POINTS
