"""A package is installed next to a manifest, which depends on it: both, or nothing."""

from pathlib import Path

import pytest

from caraway_core.errors import InvalidRequestError
from caraway_core.packages import installing
from caraway_core.packages.collecting import Package
from caraway_core.packages.sources import PackageSource

PACKAGE = Package(
    "caraway.yaml", {"caraway.yaml": b"name: lib\nkind: Spicepod\n", "sql/a.sql": b"select 1"}
)
BROKEN = Package("caraway.yaml", {"caraway.yaml": b"name: lib\nviews: [{}]\n"})


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "caraway.yaml"
    path.write_text("name: app\n")
    return path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("caraway.yaml", "acme/shop"),
        ("apps/sales/caraway.yaml", "acme/shop-apps-sales"),
        ("apps/sales", "acme/shop-apps-sales"),
        ("spicepod.YAML", "acme/shop-spicepod.YAML"),
    ],
)
def test_a_package_of_a_repository_has_a_name(path: str, name: str) -> None:
    assert installing.name_of(PackageSource("acme", "shop.git", "0" * 40, path)) == name


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: app\n", "name: app\ndependencies:\n  - lib\n"),
        ("name: app", "name: app\ndependencies:\n  - lib\n"),
        ("name: app\r\n", "name: app\r\ndependencies:\r\n  - lib\r\n"),
        ("dependencies:\nname: app\n", "name: app\ndependencies:\n  - lib\n"),
        ("dependencies:\n# why\n- lib\nname: app\n", "dependencies:\n# why\n- lib\nname: app\n"),
    ],
)
def test_the_manifest_keeps_its_other_lines(manifest: Path, before: str, after: str) -> None:
    manifest.write_bytes(before.encode())
    manifest.chmod(0o640)
    if "- lib" in before:
        installing._write(PACKAGE, manifest.parent / "spicepods" / "lib")
    assert installing.install(PACKAGE, "lib", manifest, replaces="- lib" in before) == "lib"
    assert manifest.read_bytes().decode() == after
    assert manifest.stat().st_mode & 0o777 == 0o640
    assert (manifest.parent / "spicepods/lib/sql/a.sql").read_bytes() == b"select 1"


def test_a_second_dependency_stands_behind_the_first(manifest: Path) -> None:
    for name in ("one", "two"):
        installing.install(PACKAGE, name, manifest, replaces=False)
    assert manifest.read_text() == "name: app\ndependencies:\n  - one\n  - two\n"


def test_a_manifest_of_another_name_is_named(manifest: Path) -> None:
    package = Package("app.yaml", {"app.yaml": PACKAGE.files["caraway.yaml"]})
    assert installing.install(package, "lib", manifest, replaces=False) == "lib/app.yaml"


def test_what_is_installed_is_replaced_only_if_asked(manifest: Path) -> None:
    installing.install(PACKAGE, "lib", manifest, replaces=False)
    with pytest.raises(InvalidRequestError, match="exists; pass --force to replace it"):
        installing.install(PACKAGE, "lib", manifest, replaces=False)
    smaller = Package("caraway.yaml", {"caraway.yaml": PACKAGE.files["caraway.yaml"]})
    installing.install(smaller, "lib", manifest, replaces=True)
    assert not (manifest.parent / "spicepods/lib/sql").exists()


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_package_that_the_manifest_cannot_use_changes_nothing(
    manifest: Path, is_installed: bool
) -> None:
    if is_installed:
        installing.install(PACKAGE, "lib", manifest, replaces=False)
    before = manifest.read_text()
    with pytest.raises(InvalidRequestError, match="the manifest cannot use the package"):
        installing.install(BROKEN, "lib", manifest, replaces=True)
    assert manifest.read_text() == before
    lib = manifest.parent / "spicepods" / "lib" / "caraway.yaml"
    assert lib.exists() is is_installed
    assert not is_installed or lib.read_bytes() == PACKAGE.files["caraway.yaml"]
    assert [each.name for each in manifest.parent.rglob(".caraway-*")] == []


@pytest.mark.parametrize("name", ["..", "../lib", "/lib", "", "a:b", "-a"])
def test_a_name_that_leaves_the_folder_is_refused(manifest: Path, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="the name of the package"):
        installing.install(PACKAGE, name, manifest, replaces=True)
    assert list(manifest.parent.iterdir()) == [manifest]


def test_dependencies_in_a_line_are_not_edited(manifest: Path) -> None:
    installing.install(PACKAGE, "lib", manifest, replaces=False)
    manifest.write_text("name: app\ndependencies: [lib]\n")
    with pytest.raises(InvalidRequestError, match="has dependencies in a form that is not edited"):
        installing.install(PACKAGE, "other", manifest, replaces=False)
    assert not (manifest.parent / "spicepods" / "other").exists()
