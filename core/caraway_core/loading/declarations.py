"""Declarations of plug-ins: what a manifest may say of each, without an import of the plug-in.

An entry point names a declaration, or a class with one in its attribute `declaration`. The module
of a declaration must be cheap to import, since each manifest that names the plug-in imports it.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from caraway_core.loading.dialects import ROWS_ALONE, Dialect

RefreshMode = Literal["full", "append", "changes", "disabled"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A plug-in, as the check of a manifest knows it.

    `target` is `package.module:name`; a class that holds its own declaration has none. `params`
    None accepts all names, and the plug-in judges them. Those in `hidden_params` are accepted, and
    error messages do not list them.
    """

    target: str = ""
    params: frozenset[str] | None = None
    hidden_params: frozenset[str] = frozenset()
    is_local: bool = False
    """Its data or models are on this machine, so it needs no network."""

    def load(self) -> Any:
        """Import the plug-in."""
        module, _, name = self.target.partition(":")
        return getattr(importlib.import_module(module), name)

    def has_param(self, name: str) -> bool:
        """Return whether the plug-in takes a param of this name."""
        return self.params is None or name in self.params or name in self.hidden_params


@dataclass(frozen=True, slots=True)
class Connector(Declaration):
    """A source of datasets."""

    modes: tuple[RefreshMode, ...] = ("full", "append", "disabled")
    """The refresh modes that its datasets may have, the usual one first."""
    poll_s: float = 30.0
    """The seconds after which it is asked again whether its data changed."""
    is_writable: bool = False
    """Statements may change rows that follow its changes, as these exist only here."""
    is_copying: bool = False
    """Its rows are those of other datasets, whose refreshes its accelerated datasets follow."""

    @property
    def has_changes(self) -> bool:
        """True if datasets can follow its changes."""
        return "changes" in self.modes

    @property
    def is_only_followed(self) -> bool:
        """True if rows and columns come from its changes alone."""
        return self.has_changes and "full" not in self.modes


@dataclass(frozen=True, slots=True)
class CatalogConnector(Declaration):
    """A source of catalogs."""

    poll_s: float = 30.0
    """The seconds after which it is asked again which tables there are."""


@dataclass(frozen=True, slots=True)
class DatabaseReader(Declaration):
    """A reader of tables that a database keeps, with the dialect of the database."""

    dialect: Dialect = ROWS_ALONE
    dialects: Mapping[str, Dialect] = field(default_factory=dict)
    """The dialects of a reader of many kinds of databases; `reader/name` is the one with a name."""
    is_writable: bool = False
    """It is a `RemoteWriter`, so rows can be inserted."""
    is_changeable: bool = False
    """It is a `RemoteChanger`, so rows can be updated and deleted."""
    is_replacing: bool = False
    """It is a `RemoteReplacer`, so rows can be updated, deleted and merged by their places."""
    is_merging: bool = False
    """It is a `RemoteMerger`, so rows can be merged."""
    is_creating: bool = False
    """It is a `RemoteCreator`, so tables can be created and dropped."""
