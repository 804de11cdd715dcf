"""Repositories that projects may be connected to: none outside of the allowed places."""

import pytest

from caraway_management.domain import repositories
from caraway_management.domain.refusals import RefusedError

ALLOWED = ("https://git.example.com/team", "file:///srv/git/", "ssh://git@git.example.com")


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/team/shop",
        "https://git.example.com/team/shop.git",
        "https://git.example.com/team/sh%20op",
        "file:///srv/git/shop",
        "ssh://git@git.example.com/team/shop",
    ],
)
def test_urls_of_allowed_places(url: str) -> None:
    assert repositories.check_url(url, ALLOWED) == url
    assert repositories.check_url(f"git:{url}", ALLOWED) == url


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://git.example.com/team", "github_not_connected"),
        ("https://git.example.com/teams/shop", "github_not_connected"),
        ("https://git.example.com.evil.com/team/shop", "github_not_connected"),
        ("http://git.example.com/team/shop", "invalid_repository"),
        ("ext://sh -c id", "invalid_repository"),
        ("", "invalid_repository"),
        ("https://git.example.com/team/" + "a" * 1_000, "invalid_repository"),
        ("https://git.example.com/team/shop\n", "invalid_repository"),
        ("https://git.example.com/team/shop?a", "invalid_repository"),
        ("https://user:hunter2@git.example.com/team/shop", "invalid_repository"),
        ("https://user@git.example.com/team/shop", "invalid_repository"),
        ("ssh://git:hunter2@git.example.com/shop", "invalid_repository"),
        ("file:///srv/git/../secret", "invalid_repository"),
        ("file:///srv/git/./secret", "invalid_repository"),
        ("file:///srv/git/-secret", "invalid_repository"),
        ("file:///srv/git/%2e%2e/secret", "invalid_repository"),
        ("file:///srv/git/.%2E/secret", "invalid_repository"),
        ("file:///srv/git/a%2f..%2f..%2fsecret", "invalid_repository"),
        ("file:///srv/git/%252e%252e/secret", "invalid_repository"),
        ("file:///srv/git/%2dsecret", "invalid_repository"),
    ],
)
def test_other_urls_are_refused(url: str, code: str) -> None:
    with pytest.raises(RefusedError) as caught:
        repositories.check_url(url, ALLOWED)
    assert (caught.value.code, caught.value.status) == (code, 400)
    assert list(caught.value.fields) == ["repository"]
    assert "hunter2" not in caught.value.message


def test_without_allowed_places_there_is_no_repository() -> None:
    with pytest.raises(RefusedError, match=r"\(none\)"):
        repositories.check_url("https://git.example.com/team/shop", ())


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("", ""),
        (".", ""),
        ("./", ""),
        ("/", ""),
        ("a", "a"),
        ("/a/b/", "a/b"),
        ("@a+b._-", "@a+b._-"),
    ],
)
def test_folders_of_manifests(text: str, folder: str) -> None:
    assert repositories.check_root(text) == folder


@pytest.mark.parametrize("text", ["..", "a/..", "a/./b", "-a", "a/-b", "a b", "a//b", "a" * 256])
def test_other_folders_are_refused(text: str) -> None:
    with pytest.raises(RefusedError) as caught:
        repositories.check_root(text)
    assert list(caught.value.fields) == ["root_directory"]


@pytest.mark.parametrize("text", ["a" * 40, "0" * 64])
def test_commits(text: str) -> None:
    assert repositories.check_commit(text) == text


@pytest.mark.parametrize("text", ["", "a" * 39, "a" * 41, "A" * 40, "g" * 40, "a" * 40 + "\n"])
def test_what_names_no_commit(text: str) -> None:
    with pytest.raises(RefusedError, match="40 or 64"):
        repositories.check_commit(text)
