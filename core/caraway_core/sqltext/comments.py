"""Removes comments from SQL text."""

from caraway_core.sqltext import lexer

_BEGINNINGS = ("--", "/*")


def left_out(sql: str) -> str:
    """Replace each comment with a space; the content of `/*! ... */` stays, because it runs."""
    if not any(each in sql for each in _BEGINNINGS):
        return sql
    pieces: list[str] = []
    sql = lexer.plain(sql)
    done = 0
    for token in lexer.matches(sql):
        if token.lastgroup == "comment":
            pieces.append(sql[done : token.start()])
            done = token.end("comment")
    return " ".join((*pieces, sql[done:]))
