"""Tells constant expressions from those that read columns."""

from collections.abc import Sequence

from caraway_core.sqltext import builtin_functions, lexer

_CONSTANTS = frozenset(
    "AND AS BETWEEN CASE CAST CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DATE ELSE END FALSE IN "
    "INTERVAL IS LIKE NOT NULL OR THEN TIME TIMESTAMP TRUE TRY_CAST WHEN".split()
)
_NO_CONSTANTS = builtin_functions.AGGREGATES | builtin_functions.RANDOM


def is_constant(text: str) -> bool:
    """Return whether an expression reads no column: it has no names but those of calls."""
    tokens = list(lexer.significant(text))
    levels: list[str] = []
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        following = tokens[number + 1].text if number + 1 < len(tokens) else ""
        word = token.text.upper() if token.kind == "word" else ""
        match token.kind:
            case "open":
                levels.append(before.text.upper() if before and before.kind == "word" else "")
            case "close":
                if levels:
                    levels.pop()
            case "name" | "variable":
                return False
            case "word":
                if word == "SELECT" or token.text.lower() in _NO_CONSTANTS:
                    return False
                is_type = before is not None and (
                    before.text.upper() in ("AS", "::") or _is_type(tokens, number)
                )
                if word not in _CONSTANTS and following != "(" and not is_type:
                    return False
    return True


def _is_type(tokens: Sequence[lexer.SqlToken], number: int) -> bool:
    """Return whether a word continues a type, such as PRECISION in DOUBLE PRECISION."""
    for token in reversed(tokens[:number]):
        if token.kind != "word":
            return token.text == "::" or token.kind == "text"
        if token.text.upper() == "AS":
            return True
    return False
