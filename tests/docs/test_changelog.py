"""The changelog has a section for each release, newest first, in words of users."""

import re

from caraway_core.releases.version import __version__
from tests.kit.written_docs import DOCS

TEXT = (DOCS.parent / "CHANGELOG.md").read_text()
SECTION = re.compile(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d|not released yet)\)$", re.MULTILINE)


def test_each_section_is_a_release_with_a_date() -> None:
    sections = SECTION.findall(TEXT)
    assert len(sections) == len(re.findall(r"^## ", TEXT, re.MULTILINE))
    assert sections[0][0] == __version__
    assert [date for _, date in sections[1:] if date == "not released yet"] == []


def test_the_first_release_is_compared_with_nothing() -> None:
    """Until a release, there is no earlier state to compare with."""
    first = TEXT if len(SECTION.findall(TEXT)) == 1 else ""
    assert re.findall(r"\bno longer\b|; before,|\bBefore, ", first) == []
