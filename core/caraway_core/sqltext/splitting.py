"""Splits a script into its SQL statements."""

from dataclasses import dataclass

from caraway_core.sqltext import lexer


@dataclass(frozen=True, slots=True)
class Script:
    """The statements of a script without their `;`, and the text after the last `;`."""

    statements: tuple[str, ...]
    rest: str

    def all(self) -> tuple[str, ...]:
        """All statements, including a last one without `;`."""
        return (*self.statements, self.rest) if self.rest else self.statements


def split(text: str) -> Script:
    """Split at each `;` outside of quotes and comments; drop parts without a statement."""
    statements: list[str] = []
    start = 0
    has_words = False
    for token in lexer.matches(text):
        if token.lastgroup == "end":
            if has_words:
                statements.append(text[start : token.start()].strip())
            start, has_words = token.end("end"), False
        elif token.lastgroup != "comment":
            has_words = True
    return Script(tuple(statements), text[start:].strip() if has_words else "")
