import re
from importlib import metadata

import pytest

from caraway_core.releases.version import __version__
from tools import versions


def test_every_file_has_the_version_of_core() -> None:
    for path, text in versions.files().items():
        assert path.read_text() == text, f"{path}: run `python -m tools.versions`"


def test_the_installed_metadata_has_it() -> None:
    assert metadata.version("caraway") == __version__, "run `make setup`"


def test_no_other_file_of_a_release_names_it() -> None:
    known = set(versions.PLACES) | {"core/caraway_core/releases/version.py"}
    naming = {
        path.relative_to(versions.ROOT).as_posix()
        for folder in ("charts", "docker", "operator", "core", "docs/operate", "docs/guides")
        for path in (versions.ROOT / folder).rglob("*")
        if path.is_file()
        and path.suffix in {".py", ".yaml", ".md", ".tpl", ""}
        and re.search(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])", path.read_text())
    }
    assert naming <= known


def test_another_version_reaches_each_place() -> None:
    for path, text in versions.files("7.8.9").items():
        places = versions.PLACES[path.relative_to(versions.ROOT).as_posix()]
        assert text.count("7.8.9") == len(places)


def test_a_place_that_moved_is_an_error() -> None:
    with pytest.raises(LookupError, match="0 times"):
        versions.written("no version", [r"^(version: )"])
