"""What a session has to know of table specs before it plans over them."""

from collections.abc import Collection, Mapping

from caraway_core.ids import TableName
from caraway_core.tables import TableSpec, structs
from caraway_engine.known_faults import DoubtedRelations
from caraway_engine.scans.readers import files


def is_external(spec: TableSpec | None) -> bool:
    """Return whether a table's rows come from a reader that the engine may wait for."""
    return spec is not None and spec.is_external


def is_view(spec: TableSpec | None) -> bool:
    """Return whether a table is a query over others."""
    return spec is not None and spec.query is not None


def doubted(specs: Mapping[TableName, TableSpec]) -> DoubtedRelations:
    """Return tables that the engine reads wrongly, and all views, as they may read such tables."""
    views = [name for name, spec in specs.items() if is_view(spec)]
    unmeasured = [name for name, spec in specs.items() if files.is_measured_wrongly(spec)]
    unmasked = [name for name, spec in specs.items() if _is_unmasked(spec)]
    return DoubtedRelations(_with(views, unmeasured), _with(views, unmasked))


def _with(views: Collection[TableName], wrong: Collection[TableName]) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in (*wrong, *views)) if wrong else frozenset()


def _is_unmasked(spec: TableSpec) -> bool:
    """Return whether fields of NULL structs may hold values in the rows that the engine gets."""
    return any(scan.is_unmasked for scan in spec.scans) or any(
        map(structs.has_required, spec.schema)
    )
