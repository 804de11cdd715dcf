import json
from pathlib import Path

import pytest

from caraway.management import links
from caraway.management.links import FILE, Link
from caraway_core.errors import CarawayError

LINK = Link("http://127.0.0.1:8070", "acme", 7, "sales")


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    links.save(tmp_path, LINK)

    assert links.load(tmp_path) == LINK
    assert json.loads((tmp_path / ".caraway" / "project.json").read_text()) == {
        "management": "http://127.0.0.1:8070",
        "org": "acme",
        "project_id": 7,
        "project": "sales",
    }


def test_a_directory_without_a_file_is_not_linked(tmp_path: Path) -> None:
    assert links.load(tmp_path) is None
    assert links.load(tmp_path / "missing") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"project_id": "x"}'])
def test_a_file_that_is_not_valid_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(text)

    with pytest.raises(CarawayError, match=r"project\.json"):
        links.load(tmp_path)


def test_a_link_is_of_one_service() -> None:
    assert LINK.is_of("127.0.0.1:8070/")
    assert not LINK.is_of("https://127.0.0.1:8070")
