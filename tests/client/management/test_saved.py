import os
from pathlib import Path

import pytest

from caraway.management import saved
from caraway.management.saved import SavedCredential, SavedCredentials
from caraway_core.errors import CarawayError

URL = "http://127.0.0.1:8070"
ONE = SavedCredentials().with_service(URL, SavedCredential("secret", "ada", "acme", 7))


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "caraway" / "credentials.json"

    saved.save(file, ONE)

    assert saved.load(file) == ONE
    assert os.listdir(file.parent) == [file.name]


def test_only_the_user_may_read_the_file(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text("{}")
    file.chmod(0o644)

    saved.save(file, ONE)

    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    saved.save(file, ONE)
    file.chmod(0o640)

    with pytest.raises(CarawayError, match="chmod 600"):
        saved.load(file)


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert saved.load(tmp_path / "credentials.json") == SavedCredentials()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"current": "", "services": {"u": {"x": 1}}}'])
def test_a_file_that_is_not_valid_is_named_without_what_it_has(tmp_path: Path, text: str) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(text)
    file.chmod(0o600)

    with pytest.raises(CarawayError, match=r"cannot read .*credentials\.json: \w+; delete it"):
        saved.load(file)


def test_a_credential_is_for_its_service_only() -> None:
    assert ONE.credential_of(f"{URL}/").token == "secret"
    assert ONE.credential_of("127.0.0.1:8070").token == "secret"
    assert ONE.credential_of("https://127.0.0.1:8070").token == ""
    assert ONE.credential_of("http://example.com").token == ""


def test_the_service_of_the_last_sign_in_is_the_current_one() -> None:
    two = ONE.with_service("http://example.com/", SavedCredential("other"))

    assert two.current == "http://example.com"
    assert two.without("http://example.com") == SavedCredentials("", ONE.services)
    assert two.without(URL).current == "http://example.com"


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(ONE)


def test_the_file_is_in_the_config_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/some/where")

    assert saved.path() == Path("/some/where/caraway/credentials.json")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "caraway").write_text("a file")

    with pytest.raises(CarawayError, match="cannot write"):
        saved.save(tmp_path / "caraway" / "credentials.json", ONE)
