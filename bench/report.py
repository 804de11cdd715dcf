"""One figure, and the table of all of them."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
_BEGIN, _END = "<!-- begin figures -->", "<!-- end figures -->"


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, ours and the alternative's, and what it should be."""

    name: str
    ours: str
    alternative: str
    ratio: float
    goal: str
    is_met: bool


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


def write(figures: Sequence[Figure]) -> None:
    """Put the table between the marks of docs/performance.md."""
    page = _PAGE.read_text()
    head, rest = page.split(_BEGIN)
    tail = rest.split(_END)[1]
    body = f"{_BEGIN}\n\nMachine: {machine()}.\n\n{table(figures)}\n\n{_END}"
    _PAGE.write_text(head + body + tail)
