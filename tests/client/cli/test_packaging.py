import io
import zipfile
from pathlib import Path

import pytest

from caraway_core import manifest as manifests
from tests.client.cli.conftest import Command
from tests.kit.git_repositories import Repository

TOP = "version: v2\nkind: Spicepod\nname: shop\n"
PARTS: dict[str, str | bytes] = {
    "shop/caraway.yaml": TOP + "views: [{ref: views/sold}]\n",
    "shop/views/sold/view.yaml": "name: sold\nsql_ref: sold.sql\n",
    "shop/views/sold/sold.sql": "SELECT 1 AS a",
    "shop/notes.txt": "not a part of it",
}
MINE = "# mine\nname: mine\nkind: Caraway\nversion: v2\n"


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_a_folder_becomes_a_package_that_a_manifest_depends_on(
    caraway: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {**PARTS, "mine/caraway.yaml": MINE})
    made = caraway("package", "shop")
    assert made.stdout == "wrote shop.zip (3 files)\n", made.stderr
    names = zipfile.ZipFile(tmp_path / "shop.zip").namelist()
    assert names == ["caraway.yaml", "views/sold/sold.sql", "views/sold/view.yaml"]
    added = caraway("add", "shop.zip", "mine")
    assert added.exit_code == 0, added.stderr
    assert "mine/caraway.yaml depends on 'shop'" in added.stdout
    manifest = tmp_path / "mine" / "caraway.yaml"
    assert manifest.read_text() == MINE + "dependencies:\n  - shop\n"
    assert [view.name for view in manifests.load(manifest).views] == ["sold"]
    again = caraway("add", "shop.zip", "mine")
    assert (again.exit_code, "pass --force to replace it" in again.stderr) == (1, True)
    (tmp_path / "shop/views/sold/sold.sql").write_text("SELECT 2 AS a")
    assert caraway("add", "shop", "mine", "--force").exit_code == 0
    assert manifest.read_text() == MINE + "dependencies:\n  - shop\n"
    assert manifests.load(manifest).views[0].sql == "SELECT 2 AS a"
    assert list((tmp_path / "mine" / "spicepods").glob(".*")) == []


def test_a_package_of_a_repository_is_added(caraway: Command, tmp_path: Path) -> None:
    sha = Repository(tmp_path / "git" / "acme" / "pods.git").commit(PARTS)
    (tmp_path / "spicepod.yaml").write_text(MINE + "dependencies:\n- other # why\nviews: []")
    write(tmp_path / "other", {"caraway.yaml": TOP})
    url = ("--git-url", f"file://{tmp_path}/git")
    added = caraway("add", f"git:acme/pods/{sha}/shop/caraway.yaml", str(tmp_path), *url)
    assert added.exit_code == 0, added.stderr
    wanted = MINE + "dependencies:\n- other # why\n- acme/pods-shop\nviews: []\n"
    assert (tmp_path / "spicepod.yaml").read_text() == wanted
    assert (tmp_path / "spicepods/acme/pods-shop/views/sold/sold.sql").is_file()
    unknown = caraway("package", f"git:acme/none/{sha}/shop", *url)
    assert (unknown.exit_code, "does not exist or may not be read" in unknown.stderr) == (1, True)
    wrong = caraway("package", f"git:acme/pods/{sha}/shop", "--git-url", "https://a:b@c")
    assert (wrong.exit_code, "without a user" in wrong.stderr) == (1, True)


def test_a_manifest_that_cannot_use_a_package_stays_as_it_is(
    caraway: Command, tmp_path: Path
) -> None:
    write(tmp_path, PARTS)
    clashing = MINE + "views:\n  - {name: sold, sql: SELECT 1}\n"
    texts = {
        clashing: "the manifest cannot use the package",
        MINE + "dependencies: [other]\n": "a form that is not edited here",
        MINE + "datasets: 7\n": "datasets",
        MINE + "---\n" + MINE: "document",
    }
    write(tmp_path / "mine" / "other", {"caraway.yaml": TOP})
    file = tmp_path / "mine" / "caraway.yaml"
    for text, words in texts.items():
        file.write_text(text)
        refused = caraway("add", str(tmp_path / "shop"), str(file))
        assert (refused.exit_code, words in refused.stderr) == (1, True), refused.stderr
        assert file.read_text() == text
        assert not (tmp_path / "mine" / "spicepods" / "shop").exists()
    absent = caraway("add", str(tmp_path / "shop"), str(tmp_path / "nowhere"))
    assert "`caraway init` writes one" in absent.stderr


@pytest.mark.parametrize("name", ["../../evil.yaml", "/etc/evil", "a\\..\\b", "a/../../b", ""])
def test_zip_files_that_leave_their_folder_are_refused(
    caraway: Command, tmp_path: Path, name: str
) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("caraway.yaml", TOP)
        archive.writestr(zipfile.ZipInfo(name), "x")
    (tmp_path / "bad.zip").write_bytes(stream.getvalue())
    (tmp_path / "caraway.yaml").write_text(MINE)
    refused = caraway("add", str(tmp_path / "bad.zip"), str(tmp_path))
    assert refused.exit_code == 1
    assert "a path of the package" in refused.stderr
    assert not (tmp_path / "spicepods").exists()


def test_bombs_and_what_is_no_zip_file_are_refused(caraway: Command, tmp_path: Path) -> None:
    (tmp_path / "caraway.yaml").write_text(MINE)
    file = tmp_path / "bad.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("caraway.yaml", bytes(17 * 1024 * 1024))
    refused = caraway("add", str(file), str(tmp_path))
    assert "the package is too large" in refused.stderr
    # An entry that is larger than it says.
    content = file.read_bytes().replace((17 * 1024 * 1024).to_bytes(4, "little"), bytes(4))
    for each in (content, b"x", b"", _damaged()):
        file.write_bytes(each)
        refused = caraway("add", str(file), str(tmp_path))
        assert refused.exit_code == 1
        assert "is no zip file, is damaged, or is encrypted" in refused.stderr


def _damaged() -> bytes:
    """Return a zip file with an entry that cannot be decompressed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("caraway.yaml", TOP * 100)
    content = bytearray(stream.getvalue())
    begin = 30 + len("caraway.yaml")
    content[begin : begin + 8] = b"\xff" * 8
    return bytes(content)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(caraway: Command, tmp_path: Path, compression: int) -> None:
    (tmp_path / "caraway.yaml").write_text(MINE)
    with zipfile.ZipFile(tmp_path / "bad.zip", "w", compression) as archive:
        archive.writestr("caraway.yaml", TOP)
    refused = caraway("add", str(tmp_path / "bad.zip"), str(tmp_path))
    assert refused.exit_code == 1
    assert "a zip file of the usual compression" in refused.stderr


def test_a_folder_has_only_its_own_files(caraway: Command, tmp_path: Path) -> None:
    write(tmp_path, {"a/caraway.yaml": TOP + "views: [{ref: v.yaml}]\n", "v.yaml": "name: v\n"})
    (tmp_path / "a" / "v.yaml").symlink_to(tmp_path / "v.yaml")
    refused = caraway("package", str(tmp_path / "a"), "-o", str(tmp_path / "a.zip"))
    assert (refused.exit_code, "is a symbolic link" in refused.stderr) == (1, True)
    assert not (tmp_path / "a.zip").exists()
