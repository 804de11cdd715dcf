import pytest

from caraway import InvalidEndpointError
from caraway.requests.addresses import FlightAddress, parse_flight_url, resolve

OURS = FlightAddress("127.0.0.1", 50051, False)


@pytest.mark.parametrize(
    ("http_url", "flight_url", "environ", "expected"),
    [
        (None, None, {}, ("http://127.0.0.1:8090", OURS)),
        ("http://127.0.0.1:8090", None, {}, ("http://127.0.0.1:8090", OURS)),
        (None, "grpc://127.0.0.1:50051", {}, ("http://127.0.0.1:8090", OURS)),
        # Another port may be that of another runtime, and another host may have only one.
        ("http://127.0.0.1:9000", None, {}, ("http://127.0.0.1:9000", None)),
        ("https://data.test", None, {}, ("https://data.test", None)),
        (None, "data.test:443", {}, ("", FlightAddress("data.test", 443, True))),
        ("", "grpc://127.0.0.1:50051", {}, ("", OURS)),
        ("http://127.0.0.1:8090", "", {}, ("http://127.0.0.1:8090", None)),
        (None, None, {"CARAWAY_HTTP_URL": "http://a.test"}, ("http://a.test", None)),
        (None, None, {"CARAWAY_ENDPOINT": "a.test:1"}, ("http://a.test:1", None)),
        (None, None, {"CARAWAY_FLIGHT_URL": "grpc://b.test:1"},
         ("", FlightAddress("b.test", 1, False))),
        # Arguments belong together, and so do variables.
        ("http://a.test", None, {"CARAWAY_FLIGHT_URL": "grpc://b.test:1"}, ("http://a.test", None)),
    ],
)  # fmt: skip
def test_what_is_not_given_is_completed(
    http_url: str | None,
    flight_url: str | None,
    environ: dict[str, str],
    expected: tuple[str, FlightAddress | None],
) -> None:
    found = resolve(http_url, flight_url, environ)

    assert (found.http_url, found.flight) == expected


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("localhost:50051", "grpc+tcp://localhost:50051"),
        ("[::1]:5", "grpc+tcp://[::1]:5"),
        ("data.test", "grpc+tls://data.test:443"),
        ("grpc+tls://data.test", "grpc+tls://data.test:443"),
        ("https://data.test:9", "grpc+tls://data.test:9"),
    ],
)
def test_flight_urls_are_understood(url: str, location: str) -> None:
    assert parse_flight_url(url).location == location


@pytest.mark.parametrize("url", ["", "ftp://a:1", "grpc://", "grpc://a:port", "a:99999"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidEndpointError):
        parse_flight_url(url)


def test_http_in_plain_text_never_stands_in_for_tls() -> None:
    assert not resolve("http://a.test", "grpc+tls://a.test", {}).allows_fallback
    assert resolve("https://a.test", "grpc+tls://a.test", {}).allows_fallback
    assert resolve("http://a.test", "grpc://a.test:1", {}).allows_fallback
    with pytest.raises(InvalidEndpointError):
        resolve("", "", {})
