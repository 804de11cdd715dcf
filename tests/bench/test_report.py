"""What a run of measurements writes into docs/performance.md."""

from pathlib import Path

import pytest

from bench import report
from bench.report import Figure, Section

WIDTH = 100
NAME = "a name that is long " * 5
URL = f"https://example.org/{'x' * WIDTH}"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin a -->\nold\n<!-- end a -->\nafter\n")
    monkeypatch.setattr(report, "_PAGE", page)
    return page


def test_only_the_section_is_replaced(page: Path) -> None:
    report.write_section(Section("a", [Figure("x", "1 s", "2 s", 0.5, "1.0", True)], "Text."))
    text = page.read_text()
    assert text.startswith("before\n<!-- begin a -->\n\nMachine: ")
    assert text.endswith("\nText.\n\n<!-- end a -->\nafter\n")
    assert "old" not in text and "| x | 1 s | 2 s | 0.50 | 1.0 | yes |" in text


def test_prose_is_as_wide_as_in_documents_and_tables_stay(page: Path) -> None:
    figure = Figure(NAME, "1 s", "2 s", 0.5, "1.0", True)
    text = f"{'word ' * 40}\n\n- {'item ' * 40}\n- {URL}\n- {'a-b ' * 40}"
    report.write_section(Section("a", [figure], text))
    lines = page.read_text().splitlines()
    long = [line for line in lines if len(line) > WIDTH]
    assert [line.strip()[:1] for line in long] == ["|", "h"], "the row of the table, and the URL"
    assert [line[:7] for line in lines if "item" in line] == ["- item ", "  item ", "  item "]
    assert not [line for line in lines if line.endswith("a-")]
