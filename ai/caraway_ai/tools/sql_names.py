"""Writes names as SQL identifiers."""

import re

from caraway_core.ids import TableName
from caraway_core.manifest import names

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = frozenset(
    "all analyse analyze and any array as asc asymmetric between both case cast check collate "
    "column constraint create cross current_catalog current_date current_role current_time "
    "current_timestamp current_user default deferrable desc distinct do else end except exists "
    "false fetch filter for foreign from full grant group having ilike in initially inner "
    "intersect interval into is join lateral leading left like limit localtime localtimestamp "
    "natural not null offset on only or order outer over partition placing primary qualify "
    "references right select session_user similar some struct symmetric table then to top "
    "trailing trim true union unique user using values variadic when where window with".split()
)
"""Words that mean something else where a name may stand; in quotes they are names everywhere."""


def quoted(name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: TableName) -> str:
    """Return a table name as an SQL identifier of one or two parts."""
    return ".".join(map(quoted, name.split(".")))


def plain_name(name: str) -> str:
    """Return a column name as people write it in SQL: quoted only where it must be."""
    is_plain = _PLAIN.fullmatch(name) and name not in _RESERVED
    return name if is_plain else quoted(name)


def plain_table(name: TableName) -> str:
    """Return a table name as people write it in SQL: quoted only where it must be."""
    parts = name.split(".")
    if all(plain_name(part) == part for part in parts):
        return name
    return quoted_table(TableName(names.identity(name)))
