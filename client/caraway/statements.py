"""Cutting text into SQL statements; no I/O."""

import re
from dataclasses import dataclass

# An unclosed quote or comment runs to the end of the text: a `;` inside it ends nothing.
_TOKEN = re.compile(
    r"""
      (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<quoted>
          '(?:[^']++|'')*+(?:'|\Z)
        | "(?:[^"]++|"")*+(?:"|\Z)
        | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)
      )
    | (?P<end> ; )
    | (?P<space> \s+ )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Script:
    """Statements without their `;`, and what follows the last `;`."""

    statements: tuple[str, ...]
    rest: str

    def all(self) -> tuple[str, ...]:
        """Every statement, also a last one that no `;` ends."""
        return (*self.statements, self.rest) if self.rest else self.statements


def split(text: str) -> Script:
    """Cut at each `;` outside of quotes and comments; parts that only hold comments are dropped."""
    statements: list[str] = []
    start = 0
    has_words = False
    for token in _TOKEN.finditer(text):
        if token.lastgroup in ("comment", "space"):
            continue
        if token["end"] is None:
            has_words = True
            continue
        if has_words:
            statements.append(text[start : token.start()].strip())
        start, has_words = token.end(), False
    return Script(tuple(statements), text[start:].strip() if has_words else "")
