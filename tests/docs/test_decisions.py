"""Each decision has a status, and a row below its topic in the index."""

import re
from collections import Counter

from tests.kit.written_docs import DOCS

FOLDER = DOCS / "decisions"
PAGES = {path.name: path.read_text() for path in sorted(FOLDER.glob("[0-9]*.md"))}
INDEX = (FOLDER / "README.md").read_text()
STATUS = re.compile(
    r"# (?!\d).+\n\nStatus: (accepted|superseded by \[(\d{4})\]\((\2-[\w-]+\.md)\))\n\n"
)
ROW = re.compile(r"^\| \[([\w-]+)\]\(\1\.md\) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_the_line_below_the_title_is_the_status() -> None:
    without = [name for name, text in PAGES.items() if not STATUS.match(text)]
    assert without == [], "write `Status: accepted` below the title, with empty lines around it"


def test_what_supersedes_a_page_is_there_and_accepted() -> None:
    followers = [match[3] for text in PAGES.values() if (match := STATUS.match(text)) and match[3]]
    assert followers
    for name in followers:
        assert PAGES[name].split("\n")[2] == "Status: accepted"


def test_the_index_has_one_row_for_each_page_with_its_status() -> None:
    topics = INDEX.partition("## By topic")[2].partition("## Dependencies")[0]
    rows = {f"{match[1]}.md": match[3] for match in ROW.finditer(topics)}
    counts = Counter(match[1] for match in ROW.finditer(topics))
    assert max(counts.values()) == 1
    assert rows == {name: STATUS.match(text)[1] for name, text in PAGES.items()}, (  # type: ignore[index]
        "add a row below a topic of docs/decisions/README.md"
    )


def test_numbers_occur_once() -> None:
    numbers = Counter(name[:4] for name in PAGES)
    assert [number for number, count in numbers.items() if count > 1] == []
