"""Tells from its text if a statement may change data, before it is planned."""

import re

from caraway_core.sqltext import grammar, lexer

_VERBS = ("INSERT", "REPLACE", "MERGE", "UPDATE", "DELETE", "TRUNCATE")
_RUNS_WHAT_IT_EXPLAINS = ("ANALYZE", "ANALYSE")
_LONGEST_READ = 256 * 1024
"""Of a longer text it counts that such a word is anywhere: to read 4 MiB takes seconds, in the
process that serves everybody."""
_FLAGS = re.VERBOSE | re.DOTALL
_WATCHED = re.compile(rf"(?i:{'|'.join(_VERBS + _RUNS_WHAT_IT_EXPLAINS)})(?![\w@\#$])", _FLAGS)
# One match for all that is between two such words: a match for each token takes ten times as long.
_UP_TO_WATCHED = re.compile(rf"\s*+(?:(?!{_WATCHED.pattern}){grammar.ANY_TOKEN}\s*+)*+", _FLAGS)
_BEFORE_NAME = re.compile(
    rf"\s*+(?:{grammar.COMMENT}\s*+)*+(?:{grammar.WORD}|{grammar.VARIABLE}|[\"`])", _FLAGS
)


def begins_with_write(sql: str) -> bool:
    """Tell if the first word of a text is a verb that changes a table; in doubt it is."""
    word = lexer.first_word(sql[:_LONGEST_READ])
    return word in _VERBS or (word is None and len(sql) > _LONGEST_READ)


def may_change(sql: str) -> bool:
    """Tell if a statement may write to a table; in doubt it may.

    A job that may is run at most once. A wrong yes costs it a second run after a crash; a wrong
    no would write twice.
    """
    upper = sql.upper()
    if not any(verb in upper for verb in _VERBS):
        return False
    return len(sql) > _LONGEST_READ or _has_write(lexer.plain(sql))


def _has_write(sql: str) -> bool:
    """Tell if a verb stands before a name, as it does not in a call of `replace`."""
    is_only_explained = lexer.first_word(sql) == "EXPLAIN"
    place = lexer.passed(_UP_TO_WATCHED, sql, 0)
    while word := _WATCHED.match(sql, place):
        if word[0].upper() in _RUNS_WHAT_IT_EXPLAINS:
            is_only_explained = False
        elif _BEFORE_NAME.match(sql, word.end()):
            return not is_only_explained
        place = lexer.passed(_UP_TO_WATCHED, sql, word.end())
    return False
