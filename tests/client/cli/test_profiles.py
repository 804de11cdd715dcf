from pathlib import Path

import pytest

from caraway import CarawayError
from caraway.requests import profiles
from caraway.requests.profiles import ConnectionProfile
from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime

ROUTE = "GET /v1/catalogs"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The config file, where the autouse fixture of the client has its folder."""
    path = tmp_path / "config" / "caraway" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def test_a_profile_has_the_address_and_the_key(
    caraway: Command, runtime: FakeRuntime, config: Path
) -> None:
    runtime.answers(ROUTE, Answer(body=b"[]"))
    config.write_text(f'[profiles.dev]\nurl = "{runtime.endpoint}"\napi_key = "secret"\n')

    assert caraway("catalogs", "--profile", "dev").exit_code == 0
    assert caraway("catalogs", "--profile", "dev", "--api-key", "other").exit_code == 0

    assert [asked.headers["x-api-key"] for asked in runtime.asked] == ["secret", "other"]


def test_the_default_profile_is_used_without_an_address(
    caraway: Command, runtime: FakeRuntime, config: Path
) -> None:
    runtime.answers(ROUTE, Answer(body=b"[]"))
    config.write_text(
        f'default_profile = "dev"\n[profiles.dev]\nurl = "{runtime.endpoint}"\napi_key = "secret"\n'
    )

    assert caraway("catalogs").exit_code == 0
    # The key of a profile must not reach another address.
    assert caraway("catalogs", "--url", runtime.endpoint).exit_code == 0

    assert [asked.headers.get("x-api-key") for asked in runtime.asked] == ["secret", None]


def test_a_profile_and_an_address_are_a_usage_error(caraway: Command, config: Path) -> None:
    shown = caraway("catalogs", "--profile", "dev", "--url", "http://a.test")

    assert shown.exit_code == 2
    assert "not both" in shown.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no profile 'dev'"),
        ("profiles = 1", "there is no profile 'dev'"),
        ('[profiles.prod]\nurl = "x"', "known profiles: prod"),
        ('[profiles.dev]\nuri = "x"', "unknown key 'uri'"),
        ("[profiles.dev]\nurl = 1", "must be a string"),
        ("[profiles", "cannot read"),
    ],
)
def test_a_wrong_config_file_is_explained(config: Path, text: str, message: str) -> None:
    config.write_text(text)

    with pytest.raises(CarawayError, match=message):
        profiles.load(config, "dev")


def test_without_a_file_nothing_is_set(tmp_path: Path) -> None:
    assert profiles.load(tmp_path / "none.toml", None) == ConnectionProfile()


def test_the_file_follows_xdg(tmp_path: Path) -> None:
    assert profiles.config_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/caraway/config.toml")
    # A relative path is to be ignored.
    assert profiles.config_path({"XDG_CONFIG_HOME": "x"}) == profiles.config_path({})
    assert profiles.config_path({}) == Path.home() / ".config" / "caraway" / "config.toml"
