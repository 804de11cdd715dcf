"""Finds plug-ins, engines and commands by name; nothing is imported until it is asked for.

Packages name theirs in entry points, see `pyproject.toml`. So no module here knows those above it,
and an installed package can bring more of them.
"""

import difflib
import functools
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from caraway_core.errors import NotInstalledError, UnknownPluginError
from caraway_core.loading.declarations import (
    CatalogConnector,
    Connector,
    DatabaseReader,
    Declaration,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

_PACKAGE = "caraway"
_USUAL_EXTRA = "runtime"
_UNDECLARED = Declaration()
_UNDECLARED_CONNECTOR = Connector()
_UNDECLARED_CATALOG = CatalogConnector()


class Plugins(Mapping[str, "EntryPoint"]):
    """The entry points of one group.

    Those of this package are read first and win. Others are looked for only where a name is not
    among them: that reads the metadata of every installed package.
    """

    def __init__(self, kind: str, group: str) -> None:
        """Take what error messages call a member of the group."""
        self.group = group
        self._kind = kind

    def __getitem__(self, name: str) -> "EntryPoint":
        own = _own(self.group)
        return own[name] if name in own else _all(self.group)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_all(self.group))

    def __len__(self) -> int:
        return len(_all(self.group))

    def load(self, name: str) -> Any:
        """Import what has this name.

        Raises:
            UnknownPluginError: nothing has; the message lists the known names.
            NotInstalledError: the plug-in, or a package that it needs, is not installed.
        """
        try:
            point = self[name]
        except KeyError:
            raise UnknownPluginError(self.unknown(name)) from None
        with self._naming_the_extra(point):
            loaded = point.load()
            return loaded.load() if isinstance(loaded, Declaration) else loaded

    def build(self, name: str, *arguments: object, **named: object) -> Any:
        """Import what has this name and call it.

        Raises:
            UnknownPluginError: nothing has; the message lists the known names.
            NotInstalledError: a package is not installed that it imports now or when it is called.
        """
        loaded = self.load(name)
        with self._naming_the_extra(self[name]):
            return loaded(*arguments, **named)

    def declared(self, name: str) -> Declaration:
        """Return the declaration of what has this name.

        A plug-in that is unknown, cannot be imported or declares nothing gets an empty one. Its
        load reports the reason.
        """
        try:
            loaded = self[name].load()
        except Exception:  # noqa: BLE001 -- modules of other packages may raise anything
            return _UNDECLARED
        found = loaded if isinstance(loaded, Declaration) else getattr(loaded, "declaration", None)
        return found if isinstance(found, Declaration) else _UNDECLARED

    @contextmanager
    def _naming_the_extra(self, point: "EntryPoint") -> Iterator[None]:
        try:
            yield
        except ModuleNotFoundError as exc:
            raise NotInstalledError(
                f"{self._kind} '{point.name}' needs the package '{exc.name}', which is not "
                f"installed; install it with: pip install 'caraway[{extra_of(point)}]'"
            ) from exc

    def unknown(self, name: str) -> str:
        """Word the refusal of an unknown name."""
        return unknown(self._kind, name, self)


SOURCES = Plugins("connector", "caraway.sources")
CHANGE_SOURCES = Plugins("connector", "caraway.change_sources")
CATALOG_SOURCES = Plugins("connector of catalogs", "caraway.catalog_sources")
REMOTE_READERS = Plugins("remote reader", "caraway.remote_readers")
MODEL_PROVIDERS = Plugins("model provider", "caraway.model_providers")
EMBEDDERS = Plugins("embedding provider", "caraway.embedders")
RERANKERS = Plugins("reranker provider", "caraway.rerankers")
SECRET_STORES = Plugins("secret store", "caraway.secret_stores")
STATE_STORES = Plugins("state store", "caraway.state_stores")
RESULT_STORES = Plugins("result store", "caraway.result_stores")
CHUNK_WRITERS = Plugins("chunk writer", "caraway.chunk_writers")
"""Writers of rows that only other systems read; result stores read theirs, too."""
RESULT_PLACES = Plugins("kind of location", "caraway.result_places")
ENGINES = Plugins("engine", "caraway.engines")
"""The engine of a scheduler: it runs in other processes, and the scheduler never imports it."""
COMMANDS = Plugins("command", "caraway.commands")


def connector(name: str) -> Connector:
    """Return the declaration of a source; see `Plugins.declared`."""
    declaration = SOURCES.declared(name)
    return declaration if isinstance(declaration, Connector) else _UNDECLARED_CONNECTOR


def catalog_connector(name: str) -> CatalogConnector:
    """Return the declaration of a source of catalogs; see `Plugins.declared`."""
    declaration = CATALOG_SOURCES.declared(name)
    return declaration if isinstance(declaration, CatalogConnector) else _UNDECLARED_CATALOG


def database_reader(name: str) -> DatabaseReader:
    """Return the declaration of a reader of databases; one that declares none only reads rows."""
    reader, _, dialect = name.partition("/")
    declared = REMOTE_READERS.declared(reader)
    if not isinstance(declared, DatabaseReader):
        return DatabaseReader()
    # A dialect of a newer release: only columns are chosen.
    found = declared.dialects.get(dialect, declared.dialect)
    return replace(declared, dialect=found)


def load_reader(name: str) -> Any:
    """Import a reader of databases, whichever dialect is named with it. Raises as `load` does."""
    return REMOTE_READERS.load(name.partition("/")[0])


def is_written(name: str) -> bool:
    """Return whether rows are inserted into tables of a reader of databases, if there is one."""
    return name in REMOTE_READERS and database_reader(name).is_writable


def is_created(name: str) -> bool:
    """Return whether tables of a reader of databases are created and dropped, if there is one."""
    return name in REMOTE_READERS and database_reader(name).is_creating


def extra_of(point: "EntryPoint") -> str:
    """Return the extra that an entry point needs.

    `EntryPoint.extras` splits `local-models` into two.
    """
    _, _, extra = point.value.partition("[")
    return extra.rstrip("] ") or _USUAL_EXTRA


def param_fault(kind: str, name: str, declared: Declaration) -> str:
    """Return the problem of the name of a param; empty if the plug-in takes it."""
    if declared.has_param(name):
        return ""
    return unknown(f"{kind} param", name, declared.params or ())


def unknown(kind: str, name: str, known: Collection[str]) -> str:
    """Word the refusal of an unknown name: the nearest known one, and all of them."""
    if not known:
        return f"no {kind} '{name}'; there are none"
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean '{near[0]}'? Known" if near else "; known"
    return f"no {kind} '{name}'{hint}: {', '.join(sorted(known))}"


@functools.cache
def _own(group: str) -> Mapping[str, "EntryPoint"]:
    return {each.name: each for each in _of_package().select(group=group)}


@functools.cache
def _of_package() -> "EntryPoints":
    # Imported here: most commands of the client ask for none.
    from importlib import metadata

    try:
        return metadata.distribution(_PACKAGE).entry_points
    except metadata.PackageNotFoundError as exc:
        raise NotInstalledError(
            f"the package '{_PACKAGE}' is not installed, so that its plug-ins are not known; "
            "install it with: pip install --editable ."
        ) from exc


@functools.cache
def _all(group: str) -> Mapping[str, "EntryPoint"]:
    from importlib import metadata

    others = {each.name: each for each in metadata.entry_points(group=group)}
    return {**others, **_own(group)}
