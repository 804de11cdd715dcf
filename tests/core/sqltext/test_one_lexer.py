"""Only `sqltext` knows the syntax of comments and quotes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("core", "engine", "plugins", "scheduler", "executor", "cluster", "operator", "client")
_PATTERN = re.compile(
    r"""--\[\^\\n\]        # a comment to the end of the line
      | --\|/              # how comments begin
      | /\\\*(?:\.\*|\(\?:|\[)  # a comment of several lines
      | ''\||\|''          # a quote that is written twice
      | ""\||\|""
      | ``\||\|``
      | \\\$\(\?P<\w+>[^)]*\)\\\$  # a text between tags
    """,
    re.VERBOSE,
)


def lexes(text: str) -> bool:
    return _PATTERN.search(re.sub(r"\s", "", text)) is not None


def texts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize(
    "pattern",
    [
        r"'(?:[^']|'')*'",
        r'"(?:[^"]|"")*"',
        r"--[^\n]*(?:\n|$)",
        r"/\*.*?\*/",
        r"\$(?P<tag>\w*)\$",
        r"x | -- | /\*",
    ],
)
def test_patterns_of_lexers_are_known(pattern: str) -> None:
    assert lexes(pattern)


def test_no_other_module_has_a_lexer_of_sql() -> None:
    found = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "sqltext" not in path.parts and any(map(lexes, texts(path)))
    }
    assert found == set()
