"""Named connections: the file, the default, and files that are wrong."""

from pathlib import Path

import pytest

from caraway.requests import profiles
from caraway.requests.profiles import ConnectionProfile
from caraway_core.errors import CarawayError

FILE = """
default_profile = "dev"
[profiles.dev]
url = "http://127.0.0.1:8090"
[profiles.prod]
url = "https://data.example.com"
api_key = "hunter2"
[profiles.empty]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "config.toml"
    made.write_text(FILE)
    return made


@pytest.mark.parametrize(
    ("name", "url"),
    [
        (None, "http://127.0.0.1:8090"),
        ("", "http://127.0.0.1:8090"),
        ("prod", "https://data.example.com"),
        ("empty", ""),
    ],
)
def test_profiles_by_name(file: Path, name: str | None, url: str) -> None:
    assert profiles.load(file, name).url == url


def test_a_key_is_not_printed(file: Path) -> None:
    found = profiles.load(file, "prod")
    assert found.api_key == "hunter2"
    assert "hunter2" not in repr(found)


def test_a_missing_file_has_the_default_profile_only(tmp_path: Path) -> None:
    assert profiles.load(tmp_path / "none", None) == ConnectionProfile()
    with pytest.raises(CarawayError, match=r"there is no profile 'dev' in .*; the file has none"):
        profiles.load(tmp_path / "none", "dev")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default_profile = 'x'", "no profile 'x'"),
        ("default_profile = 'x'\n[profiles.b]\n[profiles.a]", "known profiles: a, b"),
        ("default_profile = 5", "'default_profile' must be a string"),
        ("default_profile = []", "'default_profile' must be a string"),
        ("default_profile = {}", "'default_profile' must be a string"),
        ("default_profile = 'x'\nprofiles = 1", "no profile 'x'"),
        ("default_profile = 'x'\nprofiles = {x = 1}", "no profile 'x'"),
        ("default_profile = 'x'\n[profiles.x]\nuri = 'a'", "unknown key 'uri'; keys: url"),
        ("default_profile = 'x'\n[profiles.x]\nurl = 5", "'url' of profile 'x' must be a string"),
        ("[", "cannot read"),
        ("a = \udcff", "cannot read"),
    ],
)
def test_files_that_are_wrong_are_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CarawayError, match=said) as caught:
        profiles.load(file, None)
    assert str(file) in caught.value.message


def test_a_folder_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CarawayError, match="cannot read"):
        profiles.load(tmp_path, None)


@pytest.mark.parametrize("variable", ["", "relative", "~"])
def test_the_file_is_below_the_home_unless_another_folder_is_set(variable: str) -> None:
    usual = Path.home() / ".config/caraway/config.toml"
    assert profiles.config_path({"XDG_CONFIG_HOME": variable}) == usual
    assert profiles.config_path({}) == usual
    assert profiles.config_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/caraway/config.toml")
