"""Hooks of the documentation site: its sections, and pages that are not in docs/.

MkDocs calls the functions by their names; `mkdocs.yml` names this file. It runs in an environment
of its own, see `make docs`.
"""

import ast
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SECTIONS = {"guides": "Guides", "operate": "Operate", "reference": "Reference",
            "contributors": "Contribute", "decisions": "Decisions"}  # fmt: skip
_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
          "SECURITY.md": "security.md"}  # fmt: skip
_API = "reference/python-api.md"
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)]*)?\)")
_MARKED = re.compile(r"^(\s*```\w+) [\w-]+$", re.MULTILINE)
"""A fence with a word for our tests, such as `no-run`."""


def on_config(config: Any) -> Any:
    """Put the sections in order; pages of a section are sorted by name, its README first."""
    docs = Path(config["docs_dir"])
    nav: list[Any] = [{"Caraway": "README.md"}]
    for folder, title in SECTIONS.items():
        names = sorted(path.name for path in (docs / folder).glob("*.md"))
        names.sort(key=lambda name: name != "README.md")
        pages = [f"{folder}/{name}" for name in names]
        nav.append({title: [*pages, _API] if folder == "reference" else pages})
    nav += [{"Performance": "performance.md"}, *({page.removesuffix(".md").title(): page}
            for page in _PAGES.values())]  # fmt: skip
    config["nav"] = nav
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add pages of the repository's root, and the reference of the Python client."""
    from mkdocs.structure.files import File  # Only the environment of the site has it.

    contents = {page: (ROOT / name).read_text() for name, page in _PAGES.items()}
    for page, content in (contents | {_API: api_page()}).items():
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links to pages of the root at those of the site; other files become plain text."""
    source = page.file.src_uri
    origin = {new: Path(old) for old, new in _PAGES.items()}.get(source, Path("docs") / source)

    def replaced(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        path = (ROOT / origin.parent / target).resolve()
        if not path.is_relative_to(ROOT):
            return match[0]
        name = path.relative_to(ROOT).as_posix()
        if path.is_dir() and name.startswith("docs/"):
            name = f"{name}/README.md"
        if name in _PAGES or name.startswith("docs/"):
            page_name = _PAGES.get(name, name.removeprefix("docs/"))
            up = "../" * source.count("/")
            return f"[{text}]({up}{page_name}{anchor})"
        return text

    return _OUTSIDE.sub(replaced, _MARKED.sub(r"\1", markdown))


def api_page() -> str:
    """Return the page with the public names of the package `caraway`, from their docstrings."""
    tree = ast.parse((ROOT / "client" / "caraway" / "__init__.py").read_text())
    homes = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES"
    )
    guides = "[Python](../guides/python.md) and [management](../guides/management.md)"
    lines = ["# Python client", "", f"The public names of the package `caraway`. Guides: {guides}."]
    lines.append("")
    for name, home in sorted(homes.items()):
        lines += [f"## caraway.{name}", "", f"::: {home}.{name}", ""]
    return "\n".join(lines)
