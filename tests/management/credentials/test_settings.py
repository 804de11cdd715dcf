import pytest

from caraway_core.errors import CarawayError
from caraway_management.credentials.oidc import Oidc
from caraway_management.credentials.settings import (
    CredentialSettings,
    OidcSettings,
    read_public_url,
)


def test_public_urls() -> None:
    assert read_public_url("https://caraway.example/") == "https://caraway.example"
    assert CredentialSettings("https://caraway.example").is_secure
    assert not CredentialSettings("http://127.0.0.1:8070").is_secure


@pytest.mark.parametrize(
    "url",
    ["", "caraway.example", "ftp://a", "https://a/b", "https://u@a", "https://a?x"],
)
def test_other_texts_are_no_public_url(url: str) -> None:
    with pytest.raises(CarawayError, match="--public-url"):
        read_public_url(url)


def test_an_issuer_is_reached_over_tls_or_on_this_machine() -> None:
    Oidc(OidcSettings("http://127.0.0.1:9000", "id"))
    with pytest.raises(CarawayError, match="https"):
        Oidc(OidcSettings("http://issuer.example", "id"))


def test_the_secret_of_the_issuer_is_not_shown() -> None:
    assert "hunter2" not in repr(OidcSettings("https://a", "id", "hunter2"))
