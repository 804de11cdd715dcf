"""The files of a manifest are found, or the message says what to give."""

from pathlib import Path

import pytest

from caraway_core.manifest.texts import places


def test_a_manifest_is_a_file_or_in_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "spicepod.yml"
    path.write_text("")
    assert places.manifest_file(path) == places.manifest_file(tmp_path) == path
    first = tmp_path / "caraway.yaml"
    first.write_text("")
    assert places.manifest_file(tmp_path) == first
    assert places.manifest_file(path) == path


@pytest.mark.parametrize("section", sorted(places.SINGULAR))
def test_a_reference_may_be_a_folder(tmp_path: Path, section: str) -> None:
    path = tmp_path / f"{places.SINGULAR[section]}.yml"
    with pytest.raises(ValueError, match=f"holds none of {places.SINGULAR[section]}.yaml"):
        places.component_file(tmp_path, section)
    path.write_text("")
    assert places.component_file(tmp_path, section) == path


def test_what_is_not_there(tmp_path: Path) -> None:
    for name in ("none", "a\0b", "x" * 5_000):
        with pytest.raises(ValueError, match="give the path of a manifest file or of its folder"):
            places.manifest_file(tmp_path / name)
    (tmp_path / "caraway.yaml").mkdir()
    with pytest.raises(ValueError, match=r"holds none of caraway\.yaml"):
        places.manifest_file(tmp_path)


def test_installed_dependencies_are_found_in_the_folders_above(tmp_path: Path) -> None:
    top, commit = tmp_path / "top", "acme/base/" + "a" * 40
    inner = top / "spicepods" / "acme" / "shop"
    deep = inner / "spicepods" / commit / "pods"
    for folder in (deep, inner / "spicepods" / "near", tmp_path / "spicepods" / "outside"):
        folder.mkdir(parents=True)
        (folder / "caraway.yaml").write_text("")
    near = inner / "spicepods" / "near" / "caraway.yaml"
    assert places.dependency_file("near", deep, top) == near
    for prefix in ("git:", "github:"):
        found = places.dependency_file(f"{prefix}{commit}/pods", inner / "spicepods" / "near", top)
        assert found == deep / "caraway.yaml"
    with pytest.raises(ValueError, match="is not installed; `caraway add git:acme/base/"):
        places.dependency_file(f"git:{commit}/pods", top, top)
    with pytest.raises(ValueError, match="there is no"):
        places.dependency_file("outside", deep, top)


def test_siblings_have_no_dots() -> None:
    base = Path("/a/b")
    for text, expected in (("c", "/a/b/c"), ("../c", "/a/c"), ("/x/./y", "/x/y"), ("", "/a/b"),
                           ("../../../../c", "/c"), ("c/../d//e", "/a/b/d/e")):  # fmt: skip
        assert str(places.sibling(base, text)) == expected
