"""Draws the plans of EXPLAIN as trees."""

from collections.abc import Iterable, Sequence

from caraway.requests.parsing import Row

_STEP = 2
"""The number of spaces by which the server indents the inputs of an operator."""


def draw(rows: Iterable[Row]) -> str:
    """Draw the plans that EXPLAIN returned, each under its name."""
    parts = []
    for row in rows:
        texts = list(row.values())
        name, plan = (str(texts[0]), str(texts[-1])) if texts else ("", "")
        parts.append("\n".join((f"{name}:", *_tree(plan.splitlines()))))
    return "\n\n".join(parts)


def _tree(lines: Sequence[str]) -> list[str]:
    """Draw lines whose depth is their indentation."""
    nodes = [(_depth(line), line.strip()) for line in lines if line.strip()]
    drawn: list[str] = []
    # Whether an operator at a depth has another input further below; known from below.
    has_more: list[bool] = []
    for depth, text in reversed(nodes):
        del has_more[depth + 1 :]
        has_more += [False] * (depth + 1 - len(has_more))
        bars = "".join("│  " if more else "   " for more in has_more[1:depth])
        branch = ("├─ " if has_more[depth] else "└─ ") if depth else ""
        drawn.append(f"{bars}{branch}{text}")
        has_more[depth] = True
    return drawn[::-1]


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip(" "))) // _STEP
