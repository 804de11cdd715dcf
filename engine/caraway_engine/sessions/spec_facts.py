"""What a session has to know of table specs before it plans over them."""

from collections.abc import Mapping

from caraway_core.ids import TableName
from caraway_core.tables import TableSpec
from caraway_engine.scans.readers import files


def is_external(spec: TableSpec | None) -> bool:
    """Return whether a table's rows come from a reader that the engine may wait for."""
    return spec is not None and spec.is_external


def is_view(spec: TableSpec | None) -> bool:
    """Return whether a table is a query over others."""
    return spec is not None and spec.query is not None


def unmeasured(specs: Mapping[TableName, TableSpec]) -> frozenset[str]:
    """Return tables whose statistics may be wrong, and all views, as they may read such tables."""
    wrong = [name for name, spec in specs.items() if files.is_measured_wrongly(spec)]
    views = [name for name, spec in specs.items() if is_view(spec)]
    return frozenset(name.rpartition(".")[2] for name in (*wrong, *views)) if wrong else frozenset()
