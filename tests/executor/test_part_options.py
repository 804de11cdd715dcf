"""Where an executor serves parts of answers: addresses, and files that it reads when it starts."""

from dataclasses import replace
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_core.settings import Address, ExecutorFlight
from caraway_executor.part_options import PartServing


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("secret\n")
    return file


def flight(host: str, advertised: Address | None = None) -> ExecutorFlight:
    return ExecutorFlight(Address(host, 5000), advertised)


@pytest.mark.parametrize(
    ("listens", "advertised", "reached"),
    [
        ("0.0.0.0", None, Address("10.0.0.5", 0)),
        ("::", None, Address("10.0.0.5", 0)),
        ("", None, Address("10.0.0.5", 0)),
        ("127.0.0.1", None, Address("127.0.0.1", 0)),
        ("0.0.0.0", Address("lb", 443), Address("lb", 443)),
        ("127.0.0.1", Address("lb", 443), Address("lb", 443)),
    ],
)
def test_clients_reach_it_where_it_listens_or_where_it_says(
    token: Path, listens: str, advertised: Address | None, reached: Address
) -> None:
    serving = PartServing.from_options(flight(listens, advertised), "10.0.0.5", token)
    assert serving.reached_at == reached


def test_token_file_is_found_from_another_folder(
    token: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(token.parent)
    serving = PartServing.from_options(flight(""), "h", Path("token"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert serving.token() == "secret"
    assert "secret" not in repr(serving)


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_token_that_is_not_there_is_said_at_the_start(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    with pytest.raises(CarawayError, match="token file"):
        PartServing.from_options(flight(""), "h", file)


def test_files_of_tls_are_read_anew_each_time(token: Path, tmp_path: Path) -> None:
    """Certificates are renewed while the executor runs."""
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    certificate.write_bytes(b"one")
    key.write_bytes(b"two")
    wanted = replace(flight(""), certificate_file=certificate, key_file=key)
    serving = PartServing.from_options(wanted, "h", token)
    first = serving.tls()
    assert first is not None and (first.certificate, first.key, first.client_ca) == (
        b"one", b"two", None,
    )  # fmt: skip
    certificate.write_bytes(b"renewed")
    second = serving.tls()
    assert second is not None and second.certificate == b"renewed"


@pytest.mark.parametrize("missing", [0, 1])
def test_half_a_certificate_is_none(token: Path, tmp_path: Path, missing: int) -> None:
    files: list[Path | None] = [tmp_path / "f.pem", tmp_path / "f.pem"]
    files[missing] = None
    wanted = replace(flight(""), certificate_file=files[0], key_file=files[1])
    assert PartServing(wanted, Address("h", 0), token).tls() is None


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_file_that_cannot_be_read_is_named(token: Path, tmp_path: Path, missing: int) -> None:
    files = [tmp_path / "f.pem"] * 3
    files[0].write_bytes(b"x")
    files[missing] = tmp_path / "gone.pem"
    wanted = ExecutorFlight(Address("", 1), None, *files)
    with pytest.raises(CarawayError, match=r"cannot read '.*gone.pem'"):
        PartServing.from_options(wanted, "h", token)
