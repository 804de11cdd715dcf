"""The arguments of the driver for the URL of an engine."""

from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from caraway.errors import InvalidEndpointError
from caraway.sqlalchemy_dialect import CarawayDialect

KEY = "adbc.flight.sql.authorization_header"
ROOTS = "adbc.flight.sql.client_option.tls_root_certs"


def connecting(url: str) -> tuple[str, dict[str, str]]:
    (location,), options = CarawayDialect().create_connect_args(make_url(url))
    assert options["autocommit"] is True
    return location, options["db_kwargs"]


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("caraway://", "grpc+tcp://127.0.0.1:50051"),
        ("caraway://localhost:15051", "grpc+tcp://localhost:15051"),
        ("caraway://localhost?tls=true", "grpc+tls://localhost:443"),
        ("caraway://data.example.com", "grpc+tls://data.example.com:443"),
        ("caraway://data.example.com:50051", "grpc+tls://data.example.com:50051"),
        ("caraway://data.example.com?tls=false", "grpc+tcp://data.example.com:50051"),
        ("caraway://[::1]:7", "grpc+tcp://[::1]:7"),
    ],
)
def test_address(url: str, location: str) -> None:
    assert connecting(url) == (location, {})


def test_what_the_url_leaves_out_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    roots = tmp_path / "roots.pem"
    roots.write_text("certificate")
    monkeypatch.setenv("CARAWAY_FLIGHT_URL", "grpc+tls://data.example.com:7")
    monkeypatch.setenv("CARAWAY_API_KEY", "secret")
    monkeypatch.setenv("CARAWAY_TLS_ROOT_CERT", str(roots))
    location, options = connecting("caraway://")
    assert location == "grpc+tls://data.example.com:7"
    assert options == {KEY: "Bearer secret", ROOTS: "certificate"}
    assert connecting("caraway://:own@localhost") == (
        "grpc+tcp://localhost:50051",
        {KEY: "Bearer own"},
    )


def test_other_options_go_to_the_driver() -> None:
    _, options = connecting("caraway://localhost?header.X-Trace=a&adbc.rpc.result_queue_size=2")
    assert options == {
        "adbc.flight.sql.rpc.call_header.x-trace": "a",
        "adbc.rpc.result_queue_size": "2",
    }


def test_tls_is_true_or_false() -> None:
    with pytest.raises(InvalidEndpointError, match="'maybe'"):
        connecting("caraway://localhost?tls=maybe")
