"""Only `sqltext` knows the syntax of comments and quotes."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.kit import sources

_PATTERN = re.compile(
    r"""--\[\^\\n\]        # a comment to the end of the line
      | --\|/              # how comments begin
      | /\\\*(?:\.\*|\(\?:|\[)  # a comment of several lines
      | ''\||\|''          # a quote that is written twice
      | ""\||\|""
      | (?<!`)``\||\|``(?!`)  # three of them are a fence of Markdown
      | \\\$\(\?P<\w+>[^)]*\)\\\$  # a text between tags
    """,
    re.VERBOSE,
)


def lexes(text: str) -> bool:
    return _PATTERN.search(re.sub(r"\s", "", text)) is not None


def texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
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


def test_fences_of_markdown_are_no_quotes() -> None:
    assert not lexes(r"```(.*?)(?:```|\Z)")
    assert lexes(r"`(?:[^`]|``)*`")


def test_no_other_module_has_a_lexer_of_sql() -> None:
    found = {
        path
        for path, tree in sources.modules().items()
        if "/sqltext/" not in path and any(map(lexes, texts(tree)))
    }
    assert found == set()
