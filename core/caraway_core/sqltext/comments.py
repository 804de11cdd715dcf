"""Takes the comments out of SQL text."""

from caraway_core.sqltext import lexer

_BEGINNINGS = ("--", "/*")


def left_out(sql: str) -> str:
    """Return a text with a space in place of each comment; what a comment runs stays."""
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
