"""Checks SQL and secret references in the strings of a manifest.

Core checks the structure of a manifest. These checks keep a manifest that cannot work from starting
a rollout. Whether columns, and tables of catalogs, exist is known only to a scheduler.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import sqloxide

from caraway_core.manifest.values.values import ALL_STORES
from caraway_kube.resources import view_tables
from caraway_kube.resources.cluster import CarawayClusterSpec

Found = tuple[tuple[str | int, ...], str]
"""A path in the manifest, and the problem."""
_QUERY = "Query"
_REFERENCE = re.compile(r"\$\{\s*([A-Za-z_][\w-]*)\s*:[^{}]*\}")
_SECTIONS = ("catalogs", "datasets", "runtime")


def problems(spec: CarawayClusterSpec, content: Mapping[str, Any]) -> Iterator[Found]:
    """Yield the problems in the strings of a manifest with a valid structure."""
    for index, view in enumerate(content.get("views") or ()):
        if isinstance(view.get("sql"), str) and (fault := _fault(view["sql"])):
            yield ("views", index, "sql"), fault
        elif isinstance(view.get("sql"), str):
            for table in view_tables.unknown(view["sql"], content):
                message = f"reads '{table}', which is no dataset and no view of the manifest"
                yield ("views", index, "sql"), message
    for section in ("datasets", "views"):
        for index, each in enumerate(content.get(section) or ()):
            sql = (each.get("acceleration") or {}).get("refresh_sql")
            if isinstance(sql, str) and (fault := _fault(sql)):
                yield (section, index, "acceleration", "refresh_sql"), fault
    for index, each in enumerate(content.get("functions") or ()):
        if isinstance(body := each.get("body"), str):
            # Parameters are placeholders or names, so a body is SQL as it is.
            sql = body if each.get("kind") == "table" else f"SELECT {body}"
            if fault := _fault(sql):
                yield ("functions", index, "body"), fault
    stores = _stores(spec, content)
    for section in _SECTIONS:
        for path, text in _texts((section,), content.get(section)):
            for store in _REFERENCE.findall(text):
                if store not in stores:
                    names = ", ".join(sorted(stores))
                    yield path, f"unknown secret store '{store}'; known: {names}"


def _fault(sql: str) -> str:
    """Return why a string is not a single query, or '' if it is."""
    try:
        statements = sqloxide.parse_sql(sql, dialect=view_tables.DIALECT)
    except ValueError as exc:
        return f"is not SQL: {str(exc).removeprefix('Query parsing failed.').strip()}"
    if len(statements) != 1:
        return f"must be one statement, but contains {len(statements)}"
    return "" if _QUERY in statements[0] else "must be a query"


def _stores(spec: CarawayClusterSpec, content: Mapping[str, Any]) -> set[str]:
    declared = content.get("secrets")
    # A manifest without stores reads the environment. One with any store does not.
    names = {"env"} if declared is None else {str(each.get("name")) for each in declared}
    return {*names, *(each.name for each in spec.secrets), ALL_STORES}


# Any: JSON values.
def _texts(
    path: tuple[str | int, ...], value: object
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    match value:
        case str():
            yield path, value
        case Mapping():
            for key, held in value.items():
                yield from _texts((*path, key), held)
        case list():
            for index, held in enumerate(value):
                yield from _texts((*path, index), held)
