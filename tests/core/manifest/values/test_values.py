"""Values of a manifest that have rules of their own: catalogs, secret stores and snapshots."""

from pathlib import Path

import pytest

from caraway_core.manifest.values.values import DeclaredCatalog
from tests.core.manifest.conftest import Loads, Refuses


@pytest.mark.parametrize(
    ("include", "title", "is_included"),
    [
        ((), "a.b", True),
        (("a.*",), "a.b", True),
        (("a.*",), "b.a", False),
        (("*.b", "c.d"), "c.d", True),
        (("a.b",), "A.b", False),
        (("a.?",), "a.bc", False),
        (("a.[bc]",), "a.c", True),
    ],
)
def test_a_catalog_includes_what_a_pattern_names(
    include: tuple[str, ...], title: str, is_included: bool
) -> None:
    catalog = DeclaredCatalog("c", "postgres", "postgres", "", Path(), include=include)
    assert catalog.includes(title) is is_included


def test_the_path_of_a_secret_store_is_a_param(loads: Loads) -> None:
    text = "secrets: [{from: 'file:/run/secrets', name: s}, {from: env, name: e, params: {a: b}}]"
    stores = loads(text).secrets
    assert [(each.kind, each.params) for each in stores] == [
        ("file", {"path": "/run/secrets"}), ("env", {"a": "b"})
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("{from: 'env:.env', name: a}", "the store 'env' takes no path; write 'env', or 'dotenv:"),
        ("{from: vaults, name: a}", "no secret store 'vaults'; did you mean 'vault'"),
        ("{from: env, name: secrets}", "'secrets' means all stores in a reference"),
        ("{from: env, name: '1a'}", "'1a' is not a store name; use letters, digits"),
        ("{from: env, name: 'a b'}", "'a b' is not a store name"),
        ("{from: env, name: ''}", "secrets[0].name"),
    ],
)
def test_wrong_secret_stores_are_refused(refuses: Refuses, item: str, problem: str) -> None:
    problems = refuses(f"name: app\nsecrets: [{item}]")
    assert any(problem in each for each in problems), problems


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("snapshots: {location: /var/s}", "/var/s"),
        ("snapshots: {location: /var/s, enabled: false}", None),
        ("snapshots: {}", None),
        ("", None),
    ],
)
def test_snapshots_have_a_place_unless_they_are_off(
    loads: Loads, text: str, location: str | None
) -> None:
    settings = loads(text).snapshots
    assert (settings.location if settings else None) == location
