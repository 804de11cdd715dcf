"""The host of git repositories that a user names."""

import pytest

from caraway_core.manifest.texts import git_urls


@pytest.mark.parametrize(
    "text",
    ["https://github.com", "http://127.0.0.1:80/a/", "file:///srv/git", "https://[::1]:8/a%20b",
     git_urls.DEFAULT_GIT_URL],
)  # fmt: skip
def test_hosts_are_taken_as_they_are(text: str) -> None:
    assert git_urls.checked_git_url(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "github.com", "ssh://git.test", "git@git.test:a/b", "https://", "https://me@git.test",
     "https://me:hunter2@git.test", "https://git.test/?a=b", "https://git.test/#a",
     "https://git.test/../a", "https://git.test/a b", "https://git.test\n", "ext::sh -c id",
     "--upload-pack=id", "file:///a/../b", "HTTPS://git.test"],
)  # fmt: skip
def test_what_is_no_host_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="must be a URL with https, http or file") as caught:
        git_urls.checked_git_url(text)
    assert "hunter2" not in str(caught.value)
