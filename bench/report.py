"""One figure, and the table of all of them."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, ours and the alternative's, and what it should be."""

    name: str
    ours: str
    alternative: str
    ratio: float
    goal: str
    is_met: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with marks of its own: figures, and what else it tells in Markdown."""

    name: str
    figures: Sequence[Figure]
    text: str


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a Markdown table."""
    rows = ["| what | Caraway | alternative | ratio | goal | met |", "|---|---|---|---|---|---|"]
    rows += [
        f"| {f.name} | {f.ours} | {f.alternative} | {f.ratio:.2f} | {f.goal} "
        f"| {'yes' if f.is_met else '**no**'} |"
        for f in figures
    ]
    return "\n".join(rows)


def machine() -> str:
    """Name what the figures depend on."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("datafusion", "pyarrow"))
    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {versions}, "
        f"{platform.system()} {platform.machine()}"
    )


def written(section: Section) -> str:
    """Return a section as Markdown."""
    figures = f"{table(section.figures)}\n\n" if section.figures else ""
    return figures + section.text


def write(figures: Sequence[Figure]) -> None:
    """Put the table between the marks of docs/performance.md."""
    _replace("figures", f"Machine: {machine()}.\n\n{table(figures)}")


def write_section(section: Section) -> None:
    """Put a section between its own marks."""
    _replace(section.name, f"Machine: {machine()}.\n\n{written(section)}")


def _replace(mark: str, body: str) -> None:
    begin, end = f"<!-- begin {mark} -->", f"<!-- end {mark} -->"
    head, rest = _PAGE.read_text().split(begin)
    tail = rest.split(end)[1]
    _PAGE.write_text(f"{head}{begin}\n\n{body}\n\n{end}{tail}")
