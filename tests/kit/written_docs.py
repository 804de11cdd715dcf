"""Parts of pages that are made from code: compared, or written with `CARAWAY_WRITE_DOCS=1`.

A part lies between two comments of Markdown: `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

import os
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def check(page: str, part: str, text: str) -> None:
    """Fail unless this part of a page of docs/ has this text."""
    path = DOCS / page
    is_text = path.read_text()
    expected = replaced(is_text, part, text)
    if os.environ.get("CARAWAY_WRITE_DOCS") == "1":
        path.write_text(expected)
    else:
        assert is_text == expected, (
            f"docs/{page}: run this test with CARAWAY_WRITE_DOCS=1, and look at the difference"
        )


def replaced(page: str, part: str, text: str) -> str:
    """Return a page with another text in a part of it."""
    begin, end = f"<!-- begin {part} -->\n", f"<!-- end {part} -->"
    found = re.findall(f"{re.escape(begin)}.*?{re.escape(end)}", page, re.DOTALL)
    assert len(found) == 1, f"the page has {len(found)} parts with the name {part!r}"
    return page.replace(found[0], f"{begin}{text.strip()}\n{end}")


def table(*rows: tuple[str, ...]) -> str:
    """Return a table of Markdown; the first row is its head."""
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *others])
