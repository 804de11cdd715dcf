"""Decides from the text whether a statement may change data, before it is planned."""

import re

from caraway_core.sqltext import grammar, lexer, table_statements

_VERBS = ("INSERT", "REPLACE", "MERGE", "UPDATE", "DELETE", "TRUNCATE")
_FIRST = _VERBS + table_statements.VERBS
"""Those that come first where they change anything, and words that are names elsewhere."""
_RUNS_WHAT_IT_EXPLAINS = ("ANALYZE", "ANALYSE")
_LONGEST_READ = 256 * 1024
"""In longer texts the verb may be anywhere: parsing 4 MiB takes seconds, in the process that serves
all requests.
"""
_FLAGS = re.VERBOSE | re.DOTALL
_WATCHED = re.compile(rf"(?i:{'|'.join(_VERBS + _RUNS_WHAT_IT_EXPLAINS)})(?![\w@\#$])", _FLAGS)
# One match for all text between two such words is ten times as fast as one per token.
_UP_TO_WATCHED = re.compile(rf"\s*+(?:(?!{_WATCHED.pattern}){grammar.ANY_TOKEN}\s*+)*+", _FLAGS)
_BEFORE_NAME = re.compile(
    rf"\s*+(?:{grammar.COMMENT}\s*+)*+(?:{grammar.WORD}|{grammar.VARIABLE}|[\"`])", _FLAGS
)


def begins_with_write(sql: str) -> bool:
    """Return whether the first word is a verb that changes a table; if unsure, return True."""
    word = lexer.first_word(sql[:_LONGEST_READ])
    return word in _FIRST or (word is None and len(sql) > _LONGEST_READ)


def may_change(sql: str) -> bool:
    """Return whether a statement may write to a table; if unsure, return True.

    A job that may write runs at most once. A wrong True costs it a retry after a crash. A wrong
    False would write twice.
    """
    upper = sql.upper()
    if any(verb in upper for verb in table_statements.VERBS) and begins_with_write(sql):
        return True
    if not any(verb in upper for verb in _VERBS):
        return False
    return len(sql) > _LONGEST_READ or _has_write(lexer.plain(sql))


def _has_write(sql: str) -> bool:
    """Return whether a verb is followed by a name, unlike in a call of `replace`."""
    is_only_explained = lexer.first_word(sql) == "EXPLAIN"
    place = lexer.passed(_UP_TO_WATCHED, sql, 0)
    while word := _WATCHED.match(sql, place):
        if word[0].upper() in _RUNS_WHAT_IT_EXPLAINS:
            is_only_explained = False
        elif _BEFORE_NAME.match(sql, word.end()):
            return not is_only_explained
        place = lexer.passed(_UP_TO_WATCHED, sql, word.end())
    return False
