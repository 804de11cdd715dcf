"""Which hosts and web pages may reach the MCP endpoint."""

import pytest

from caraway_serving.origins import is_host_allowed, is_origin_allowed


@pytest.mark.parametrize(
    ("host", "allowed", "expected"),
    [
        ("localhost:8090", (), True),
        ("LOCALHOST", (), True),
        ("localhost.", (), True),
        ("127.0.0.1:8090", (), True),
        ("[::1]:8090", (), True),
        ("::1", (), True),
        ("evil.test", (), False),
        ("localhost.evil.test", (), False),
        ("127.0.0.1.evil.test:80", (), False),
        ("", (), False),
        (None, (), False),
        ("api.test:8090", ("api.test",), True),
        ("localhost", ("api.test",), False),
        ("api.test:8090", ("api.test:8090",), True),
        ("api.test:9", ("api.test:8090",), False),
        ("api.test:9", ("api.test:*",), True),
        ("anything", ("*",), True),
    ],
)
def test_hosts(host: str | None, allowed: tuple[str, ...], expected: bool) -> None:
    assert is_host_allowed(host, allowed) is expected


@pytest.mark.parametrize(
    ("origin", "allowed", "expected"),
    [
        (None, (), True),
        ("https://app.test", ("https://app.test",), True),
        ("https://app.test.evil.test", ("https://app.test",), False),
        ("http://app.test", ("https://app.test",), False),
        ("http://localhost:3000", ("*",), True),
        ("http://127.0.0.1", ("*",), True),
        ("http://[::1]:3000", ("*",), True),
        ("https://evil.test", ("*",), False),
        ("http://localhost.evil.test", ("*",), False),
        ("null", ("*",), False),
        ("http://[", ("*",), False),
        ("", ("*",), False),
    ],
)
def test_origins(origin: str | None, allowed: tuple[str, ...], expected: bool) -> None:
    assert is_origin_allowed(origin, allowed) is expected
