"""Tells from its text if a statement may change data, before it is planned.

A job that may is run at most once. A wrong yes costs it a second run after a crash; a wrong no
would write twice, so in doubt the answer is yes.
"""

import re

# What can hold such words without meaning them: literals and quoted names, and comments.
_SILENT = re.compile(
    r"""(?P<value>'(?:[^']++|'')*+' | "(?:[^"]++|"")*+" | \$(\w*)\$.*?\$\2\$)
    | --[^\n]* | /\*.*?\*/""",
    re.VERBOSE | re.DOTALL,
)
_CHANGES = re.compile(
    r"\b(?:INSERT|REPLACE|MERGE)\s+(?:OR\s+\w+\s+)?(?:INTO|OVERWRITE)\b|\bUPDATE\s+[\w\"]|\bDELETE\s+FROM\b"
    r"|\bTRUNCATE\b",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(r"\s*EXPLAIN\b(?!\s+ANALY[SZ]E)", re.IGNORECASE)


def may_change(sql: str) -> bool:
    """Whether the statement may write to a table."""
    spoken = _SILENT.sub(lambda found: " x " if found["value"] else " ", sql)
    return not _EXPLAINS.match(spoken) and bool(_CHANGES.search(spoken))
