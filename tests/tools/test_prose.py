import json
from pathlib import Path

import pytest

from tools import prose
from tools.prose import Count

MODULE = '''"""What a module does."""

# A comment of
# two lines.
LIMIT = 3
"""How many there are."""


def plain() -> None:  # noqa: D103
    """Return a row; `what it` is code, and "nobody" a quotation."""
    "Whether this counts: it is not the first expression."
'''
DOCUMENT = """# What a title says

| what is | in a table |

A paragraph that nobody
reads.

- What an item says.
- A plain item.

```sql
SELECT 'what is it'
```
"""


def test_texts_of_a_module_are_docstrings_and_comments(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODULE)
    found = {
        (text.line, text.content, bool(text.odd)) for text in prose.of_module(tmp_path / "m.py")
    }
    assert found == {
        (1, "What a module does.", True),
        (3, "A comment of two lines.", False),
        (6, "How many there are.", True),
        (10, 'Return a row; `what it` is code, and "nobody" a quotation.', False),
    }


def test_texts_of_a_document_are_paragraphs_and_items(tmp_path: Path) -> None:
    (tmp_path / "d.md").write_text(DOCUMENT)
    found = [
        (text.line, text.content, bool(text.odd)) for text in prose.of_document(tmp_path / "d.md")
    ]
    assert found == [
        (5, "A paragraph that nobody reads.", True),
        (8, "What an item says.", True),
        (9, "A plain item.", False),
    ]


@pytest.mark.parametrize(
    ("text", "is_odd"),
    [
        ("The header tells the version.", True),
        ("It stands for a row.", False),
        ("Rows are no keys.", True),
        ("The row is no longer there.", False),
        ("So many rows are read.", True),
        ("So many that it fails.", False),
        ("Return the rows of a share.", False),
    ],
)  # fmt: skip
def test_odd_phrases(text: str, is_odd: bool) -> None:
    assert bool(prose.Text(Path("x"), 1, text).odd) is is_odd


def test_lines_of_prose_are_measured_and_tables_are_not(tmp_path: Path) -> None:
    words = "word " * 25
    (tmp_path / "d.md").write_text(f"{words}\n| {words} |\nshort\n```\n{words}\n```\n{'x' * 200}\n")
    assert list(prose.long_lines(tmp_path / "d.md")) == [1]


def test_ceilings_are_checked_and_only_fall() -> None:
    ceilings = {"a": {"odd_of_1000": 40, "long": 10}, "b": {"odd_of_1000": 40, "long": 10}}
    counts = {"a": Count(100, 5, 3), "b": Count(1000, 12, 0), "new": Count(10, 1, 0)}
    messages = prose.exceeded(counts, ceilings)
    assert [message.partition(":")[0] for message in messages] == ["a", "new"]
    assert prose.lowered(counts, ceilings) == {
        "a": {"odd_of_1000": 40, "long": 5},
        "b": {"odd_of_1000": 20, "long": 0},
        "new": {"odd_of_1000": 100, "long": 0},
    }


def test_every_part_of_the_repository_has_files_and_a_ceiling() -> None:
    parts = prose.parts()
    assert {"search", "ai", "executor/indexes", "tests", "docs/decisions"} <= parts.keys()
    assert all(parts.values())
    assert json.loads(prose.CEILINGS.read_text()).keys() >= parts.keys()
