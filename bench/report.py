"""Figures, and the tables in docs/performance.md."""

import os
import platform
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Figure:
    """One comparison of Caraway with an alternative, and its goal."""

    name: str
    ours: str
    alternative: str
    ratio: float
    goal: str
    is_met: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page between its own marks: figures, and further text in Markdown."""

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
    """Describe the machine and the versions that the figures depend on."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("datafusion", "pyarrow"))
    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {versions}, "
        f"{platform.system()} {platform.machine()}"
    )


def render_section(section: Section) -> str:
    """Return a section as Markdown."""
    figures = f"{table(section.figures)}\n\n" if section.figures else ""
    return figures + section.text


def _wrapped(body: str) -> str:
    """Return Markdown whose lines of prose are as long as those of a document; tables stay."""
    return "\n".join(
        line
        if line.startswith("|")
        else textwrap.fill(
            line,
            _WIDTH,
            subsequent_indent="  " if line.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in body.split("\n")
    )


def write_figures(figures: Sequence[Figure]) -> None:
    """Write the table between its marks in docs/performance.md."""
    _replace("figures", f"Machine: {machine()}.\n\n{table(figures)}")


def write_section(section: Section) -> None:
    """Write a section between its marks in docs/performance.md."""
    _replace(section.name, f"Machine: {machine()}.\n\n{render_section(section)}")


def _replace(mark: str, body: str) -> None:
    begin, end = f"<!-- begin {mark} -->", f"<!-- end {mark} -->"
    head, rest = _PAGE.read_text().split(begin)
    tail = rest.split(end)[1]
    _PAGE.write_text(f"{head}{begin}\n\n{_wrapped(body)}\n\n{end}{tail}")
