"""Derives the state of views from their plans and the states of their tables; pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import View
from caraway_core.statements import ViewFacts
from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState
from caraway_scheduler.catalog.states import DatasetState, ViewState, source_of

_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class InstalledCatalog:
    """The result of installing a catalog: failed tables, and facts of views."""

    failed: Mapping[TableName, str] = field(default_factory=dict)
    views: Mapping[TableName, ViewFacts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Judged:
    """The verdict on a query: an error, a table to wait for, or neither if it is ready."""

    error: DatasetError | None = None
    waits_for: str = ""
    root: str = ""
    """The original cause of an error that was passed on through other views."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Determines the states of views; `planned` belongs to the catalog that statements use."""

    planned: InstalledCatalog
    datasets: Mapping[TableName, DatasetState]
    views: Mapping[TableName, View]
    catalogs: Mapping[str, SourceCatalogState] = field(default_factory=dict)

    def state(self, view: View) -> ViewState:
        """Return the state of a view of the manifest."""
        name = TableName(view.name)
        if name not in self.planned.failed and name not in self.planned.views:
            return ViewState(view, "initializing", None, "the catalog is being installed")
        judged = self._planned(name, f"view '{name}'", (name,))
        if judged.error is not None:
            return ViewState(view, "error", judged.error)
        if judged.waits_for:
            return ViewState(view, "initializing", None, judged.waits_for)
        return ViewState(view, "ready")

    def source(self, name: TableName) -> tuple[DatasetError | None, str]:
        """Return the error of a dataset whose source is a query, and what it waits for."""
        judged = self._planned(self._query_table(name), f"dataset '{name}'", (name,))
        return judged.error, judged.waits_for

    def _query_table(self, dataset: TableName) -> TableName:
        """Return the table with the query of a dataset: itself, or its source if that is copied."""
        source = source_of(dataset)
        is_known = source in self.planned.views or source in self.planned.failed
        return source if is_known else dataset

    def _planned(self, table: TableName, title: str, chain: tuple[TableName, ...]) -> _Judged:
        """Judge the query of a view; `chain` lists the tables that lead here, itself last."""
        facts = self.planned.views.get(table, ViewFacts())
        failure = self.planned.failed.get(table)
        if facts.missing is not None:
            return self._lacking(facts.missing, failure or "", title, chain)
        for read in sorted(facts.reads):
            state = self.datasets.get(read)
            if state is not None and state.status == "error" and state.error is not None:
                return _broken(title, f"dataset '{read}'", _Judged(state.error))
        if failure is not None:
            return _Judged(DatasetError("invalid", f"{title}: {failure}"))
        return _Judged()

    def _lacking(
        self, table: TableName, failure: str, title: str, chain: tuple[TableName, ...]
    ) -> _Judged:
        """Judge a query that reads a missing table."""
        if len(chain) > _DEEPEST:
            return _Judged(DatasetError("invalid", f"{title}: views are nested too deeply"))
        if table in chain:
            ring = " -> ".join((*chain[chain.index(table) :], table))
            error = DatasetError("invalid", f"{title}: it reads itself ({ring}); break the cycle")
            return _Judged(error)
        if table in self.datasets:
            return self._lacking_dataset(self.datasets[table], title, chain)
        if (lacking := self._lacking_catalog(table, title)) is not None:
            return lacking
        if table not in self.views:
            return _Judged(DatasetError("not_found", f"{title}: {failure}"))
        below = self._planned(table, f"view '{table}'", (*chain, table))
        if below.error is not None:
            return _broken(title, f"view '{table}'", below)
        return _Judged(waits_for=below.waits_for or f"view '{table}'")

    def _lacking_catalog(self, table: TableName, title: str) -> _Judged | None:
        """Judge a query that reads a table of a source catalog; None if it is none of these."""
        name, _, rest = table.partition(".")
        state = self.catalogs.get(name) if "." in rest else None
        if state is None:
            return None
        if table in state.listed or not state.settled.is_set():
            return _Judged(waits_for=f"table '{table}'")
        if state.error is not None:
            return _broken(title, f"catalog '{name}'", _Judged(state.error))
        return None

    def _lacking_dataset(
        self, state: DatasetState, title: str, chain: tuple[TableName, ...]
    ) -> _Judged:
        name = state.name
        if state.status == "disabled":
            text = f"{title}: dataset '{name}', which it reads, is disabled; enable it"
            return _Judged(DatasetError("unavailable", text))
        # First, so that datasets that read each other do not quote each other's errors.
        facts = self.planned.views.get(self._query_table(name), ViewFacts())
        if facts.missing is not None:
            below = self._lacking(facts.missing, "", f"dataset '{name}'", (*chain, name))
            if below.error is not None:
                return _broken(title, f"dataset '{name}'", below)
        if state.error is not None:
            return _broken(title, f"dataset '{name}'", _Judged(state.error))
        return _Judged(waits_for=f"dataset '{name}'")


def _broken(title: str, what: str, cause: _Judged) -> _Judged:
    # Only the original cause: a long chain of views would repeat all causes at each step.
    root = cause.root or (cause.error.message if cause.error else "")
    text = f"{title}: {what}, which it reads, is in the error state: {root}"
    return _Judged(DatasetError("unavailable", text), root=root)
