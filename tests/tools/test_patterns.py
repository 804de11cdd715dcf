"""Paths in the configuration of tools match files: code moves, and its exceptions with it."""

import re
import subprocess
from fnmatch import fnmatch

import pytest

from tools import graph

FILES = subprocess.run(
    ["git", "ls-files"], cwd=graph.ROOT, capture_output=True, text=True, check=True
).stdout.splitlines()
TOOLS = graph.project()["tool"]


def expanded(pattern: str) -> list[str]:
    """Return a pattern for each choice in its braces."""
    if (match := re.search(r"\{([^{}]*)\}", pattern)) is None:
        return [pattern]
    return [
        each
        for choice in match[1].split(",")
        for each in expanded(pattern[: match.start()] + choice + pattern[match.end() :])
    ]


PATTERNS = [
    *(each for key in TOOLS["ruff"]["lint"]["per-file-ignores"] for each in expanded(key)),
    *TOOLS["coverage"]["run"]["include"],
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_a_file(pattern: str) -> None:
    assert any(fnmatch(name, pattern) for name in FILES)


def test_the_pure_modules_have_tests() -> None:
    makefile = (graph.ROOT / "Makefile").read_text()
    named = makefile.partition("PURE_TESTS := ")[2].partition("\ncoverage:")[0]
    missing = [
        path
        for path in re.findall(r"(?<![,(])\btests/[\w/]+(?:\.py)?(?![\w*/])", named)
        if not (graph.ROOT / path).exists()
    ]
    assert missing == []


def test_owners_are_of_folders_that_are_there() -> None:
    lines = (graph.ROOT / ".github" / "CODEOWNERS").read_text().splitlines()
    owned = [line.split()[0].strip("/") for line in lines if line.startswith("/")]
    assert owned
    assert [path for path in owned if not (graph.ROOT / path).exists()] == []
