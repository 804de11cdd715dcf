"""Rules for change sources: which connectors support them, and what they need.

The rules read the plain document, like those in `rules`.
"""

from collections.abc import Iterator

from caraway_core.errors import Problem
from caraway_core.loading import registry
from caraway_core.loading.declarations import Connector
from caraway_core.manifest.building import accelerating
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.rules import acceleration_rules
from caraway_core.manifest.texts import names


def dataset(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between a dataset's connector and its refresh mode."""
    try:
        connector = names.split_origin(str(document.value.get("from"))).connector
    except ValueError:
        return
    mode = _mode(document, connector)
    declared = registry.connector(connector)
    if declared.is_only_followed:
        yield from _is_followed(document, connector, mode)
    elif mode is not None and mode in accelerating.REFRESH_MODES and mode not in declared.modes:
        yield document.problem(("acceleration", "refresh_mode"), _has_no(connector, mode, declared))
    if not declared.has_changes:
        return
    is_followed = declared.is_only_followed or mode == "changes"
    is_written = document.value.get("access") == "read_write"
    if is_written and is_followed and not declared.is_writable:
        message = f"the connector '{connector}' cannot be written to; change the rows at its source"
        yield document.problem(("access",), message)
    if declared.is_only_followed:
        yield from _columns(document, connector)
    else:
        yield from _all_typed(document)


def _has_no(connector: str, mode: str, declared: Connector) -> str:
    if mode != "changes":
        known = ", ".join(declared.modes)
        return f"the connector '{connector}' has no '{mode}'; it has: {known}"
    having = ", ".join(name for name in sorted(registry.SOURCES) if _has_changes(name))
    return f"the connector '{connector}' has no changes; these have: {having}"


def _has_changes(connector: str) -> bool:
    return registry.connector(connector).has_changes


def _is_followed(document: Document, connector: str, mode: str | None) -> Iterator[Problem]:
    remedy = "add 'acceleration: {refresh_mode: changes}'"
    if mode is None:
        message = f"the connector '{connector}' is only read by its changes; {remedy}"
        yield document.problem(("from",), message)
    elif mode not in ("changes", "disabled"):
        is_written = _section(document).get("refresh_mode") is not None
        where = ("acceleration", "refresh_mode") if is_written else ("acceleration",)
        message = (
            f"the connector '{connector}' has no '{mode}', because it is only read by its changes; "
            "write 'refresh_mode: changes'"
        )
        yield document.problem(where, message)


def _columns(document: Document, connector: str) -> Iterator[Problem]:
    """Without columns, the dataset gets those of its first events."""
    columns = document.value.get("columns")
    if isinstance(columns, list):
        yield from _untyped(document, columns, f"the connector '{connector}' does not say it")


def _all_typed(document: Document) -> Iterator[Problem]:
    """Declared columns are those that the dataset has: they are declared in full or not at all."""
    columns = document.value.get("columns")
    if isinstance(columns, list) and any(_has_type(column) for column in columns):
        yield from _untyped(document, columns, "either all columns have one, or none")


def _untyped(document: Document, columns: list[object], why: str) -> Iterator[Problem]:
    for index, column in enumerate(columns):
        if isinstance(column, dict) and not _has_type(column):
            message = f"column '{column.get('name')}' needs a 'type': {why}"
            yield document.problem(("columns", index), message)


def _has_type(column: object) -> bool:
    return isinstance(column, dict) and column.get("type") is not None


def _mode(document: Document, connector: str) -> str | None:
    """Tell the refresh mode; None where there is no acceleration, or no telling."""
    if not acceleration_rules.is_on(document):
        return None
    written = _section(document).get("refresh_mode")
    if written is not None and not isinstance(written, str):
        return None
    return accelerating.refresh_mode_of(written, connector)


def _section(document: Document) -> dict[str, object]:
    section = document.value.get("acceleration")
    return section if isinstance(section, dict) else {}
