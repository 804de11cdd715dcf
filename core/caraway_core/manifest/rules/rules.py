"""Rules that involve several keys at once.

They read the plain document, not the checked shape: a broken value elsewhere must not hide them.
"""

from collections.abc import Iterator
from typing import Any

from caraway_core.errors import Problem
from caraway_core.loading import registry
from caraway_core.manifest.documents import file_references
from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.rules import acceleration_rules, change_rules, search_rules
from caraway_core.manifest.texts import names

_CREATES = "read_write_create"


def manifest(document: Document) -> Iterator[Problem]:
    """Yield the problems of the top level of a manifest."""
    yield from _auth(document)
    yield from _tls(document)
    yield from _exclusive(document, ("runtime", "auth"), "api-key", "api_key")
    yield from _one_results_cache(document)
    yield from _unique(document, ("secrets",), "secret store")
    yield from _scheduler(document)
    yield from _iceberg(document)


def references(document: Document) -> Iterator[Problem]:
    """Yield references to other files, where a manifest must not have any."""
    message = "is one manifest without other files here; write out what the file holds"
    if document.value.get("dependencies"):
        yield document.problem(("dependencies",), message)
    for reference in file_references.of_manifest(document):
        if reference.kind != "dependency":
            yield document.problem(reference.location, message)


def dataset(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of a dataset."""
    yield from _acceleration(document)
    yield from acceleration_rules.dataset(document)
    yield from change_rules.dataset(document)
    yield from search_rules.dataset(document)
    yield from _unique(document, ("columns",), "column")


def catalog(document: Document) -> Iterator[Problem]:
    """Yield the access of a source catalog whose tables are only read."""
    try:
        connector = names.split_origin(str(document.value.get("from"))).connector
    except ValueError:
        return
    access = document.value.get("access")
    if connector not in registry.CATALOG_SOURCES or access not in ("read_write", _CREATES):
        return
    if not registry.is_written(connector):
        yield document.problem(
            ("access",), f"tables of '{connector}' are only read; remove `access: {access}`"
        )
    elif access == _CREATES and not registry.is_created(connector):
        yield document.problem(
            ("access",), f"no tables are created in '{connector}'; write `access: read_write`"
        )


def view(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of a view."""
    yield from _acceleration(document)
    yield from acceleration_rules.view(document)
    yield from search_rules.view(document)
    yield from _unique(document, ("columns",), "column")
    yield from _one_of(document, (), "sql", "sql_ref")


def _acceleration(document: Document) -> Iterator[Problem]:
    where = ("acceleration",)
    yield from _exclusive(document, where, "refresh_check_interval", "refresh_cron")
    yield from _exclusive(document, where, "retention_period", "retention_sql")


def _auth(document: Document) -> Iterator[Problem]:
    runtime = _mapping(document.value, "runtime")
    if "auth" not in runtime:
        return
    # An empty section is refused too: a template that lost its keys must not open the server.
    auth = _mapping(runtime, "auth")
    names = [name for name in ("api-key", "api_key") if name in auth]
    if not names and _is_on(auth.get("oidc")):
        return
    for name in names or ["api-key"]:
        section = _mapping(runtime, "auth", name)
        keys = section.get("keys")
        has_keys = isinstance(keys, list) and any(key not in (None, "") for key in keys)
        if section.get("enabled") is not False and not has_keys:
            message = "authentication is on but has no keys; add 'keys', or set 'enabled' to false"
            yield document.problem(("runtime", "auth", name), message)


def _tls(document: Document) -> Iterator[Problem]:
    section = _mapping(document.value, "runtime").get("tls")
    if _is_on(section):
        yield from _one_of(document, ("runtime", "tls"), "certificate_file", "certificate")
        yield from _one_of(document, ("runtime", "tls"), "key_file", "key")
        mode = _mapping(document.value, "runtime", "tls").get("client_auth_mode")
        ca_file = _mapping(document.value, "runtime", "tls").get("client_auth_ca_file")
        if mode in ("request", "required") and ca_file in (None, ""):
            message = "it needs a 'client_auth_ca_file' with the authorities of the clients"
            yield document.problem(("runtime", "tls", "client_auth_mode"), message)


def _scheduler(document: Document) -> Iterator[Problem]:
    yield from _params_without_place(document, "scheduler", "state_location")


def _iceberg(document: Document) -> Iterator[Problem]:
    yield from _params_without_place(document, "iceberg", "location")
    found = _mapping(document.value, "runtime", "iceberg")
    modes = found.get("access_delegation")
    is_vended = isinstance(modes, list) and "vended-credentials" in modes
    if is_vended and not found.get("sts_role_arn"):
        message = "'vended-credentials' needs an 'sts_role_arn', the role that clients assume"
        yield document.problem(("runtime", "iceberg", "access_delegation"), message)


def _params_without_place(document: Document, section: str, place: str) -> Iterator[Problem]:
    found = _mapping(document.value, "runtime", section)
    if found.get("params") and found.get(place) is None:
        message = f"'params' needs a '{place}' that it is for"
        yield document.problem(("runtime", section, "params"), message)


def _one_results_cache(document: Document) -> Iterator[Problem]:
    runtime = _mapping(document.value, "runtime")
    if runtime.get("results_cache") and _mapping(runtime, "caching").get("sql_results"):
        message = "'results_cache' is the old name of 'caching.sql_results'; keep only the latter"
        yield document.problem(("runtime", "results_cache"), message)


def _exclusive(document: Document, at: Location, first: str, second: str) -> Iterator[Problem]:
    section = _mapping(document.value, *at)
    if section.get(first) is not None and section.get(second) is not None:
        message = f"'{first}' and '{second}' exclude each other; keep one"
        yield document.problem((*at, second), message)


def _one_of(document: Document, at: Location, first: str, second: str) -> Iterator[Problem]:
    section = _mapping(document.value, *at)
    if section.get(first) is None and section.get(second) is None:
        yield document.problem(at, f"one of '{first}' and '{second}' is needed")
    yield from _exclusive(document, at, first, second)


def _unique(document: Document, at: Location, kind: str) -> Iterator[Problem]:
    items = document.value.get(at[0])
    seen: dict[str, int] = {}
    for index, item in enumerate(items if isinstance(items, list) else []):
        name = item.get("name") if isinstance(item, dict) else None
        if name is None:
            continue
        location = (*at, index, "name")
        line = document.line(location)
        if str(name) in seen:
            message = f"{kind} '{name}' is declared twice, first on line {seen[str(name)]}"
            yield document.problem(location, message)
        seen.setdefault(str(name), line)


def _mapping(value: object, *steps: str | int) -> dict[str, Any]:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _is_on(section: object) -> bool:
    return isinstance(section, dict) and section.get("enabled") is not False
