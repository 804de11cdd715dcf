"""Finds tables that the SQL of a view reads, and that the manifest does not have.

Only names are reported that can be nothing else: tables of catalogs, of the runtime and of
schemas that the manifest does not use are known only to a scheduler.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import sqloxide

DIALECT = "generic"
_CATALOGS = frozenset({"caraway", "spice"})
_PUBLIC = "public"
_OTHERS = frozenset({"information_schema", "runtime"})
Name = tuple[str, ...]


# Any: JSON values, here and below.
def unknown(sql: str, content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables that a parsed query reads and that are not in the manifest."""
    statements = sqloxide.parse_sql(sql, dialect=DIALECT)
    names = {
        _local(str(each.get("name", "")).lower().split("."))
        for section in ("datasets", "views")
        for each in content.get(section) or ()
    }
    schemas = {name[0] for name in names if len(name) == 2} - _OTHERS
    # A name of a WITH clause counts as known everywhere in the statement.
    common = {(name,) for name in _common_tables(statements)}
    reported = set[Name]()
    for name in _tables(statements):
        local = _local([part.lower() for part in name])
        is_ours = len(local) == 1 or (len(local) == 2 and local[0] in schemas)
        if is_ours and local not in names | common | reported:
            reported.add(local)
            yield ".".join(name)


def _local(parts: list[str]) -> Name:
    """Return a name without the catalog and the schema of the runtime."""
    if len(parts) == 3 and parts[0] in _CATALOGS:
        parts = parts[1:]
    if len(parts) == 2 and parts[0] == _PUBLIC:
        parts = parts[1:]
    return tuple(parts)


def _tables(tree: object) -> Iterator[Name]:
    """Yield the tables in FROM clauses, without calls of table functions."""
    for name, value in _entries(tree):
        if name == "Table" and isinstance(value, dict) and value.get("args", 0) is None:
            parts = [part.get("Identifier", {}).get("value") for part in value["name"]]
            if all(isinstance(part, str) for part in parts):
                yield tuple(parts)


def _common_tables(tree: object) -> Iterator[str]:
    for name, value in _entries(tree):
        if name == "cte_tables":
            yield from (each["alias"]["name"]["value"].lower() for each in value)


def _entries(tree: object) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of all mappings in a tree; it may be deep."""
    waiting = [tree]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield from found.items()
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
