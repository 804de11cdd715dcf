"""The text that names a manifest in a git repository."""

import pytest

from caraway_core.errors import InvalidRequestError
from caraway_core.packages import sources
from caraway_core.packages.sources import PackageSource

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("prefix", ["git:", "github:"])
@pytest.mark.parametrize("sha", [SHA, SHA + "0" * 24])
def test_a_source_has_four_parts(prefix: str, sha: str) -> None:
    source = sources.parse(f"{prefix}acme/shop.git/{sha}/apps/./sales/", "'from'")
    assert source == PackageSource("acme", "shop.git", sha, "apps/sales")
    assert source.url("https://git.test/") == "https://git.test/acme/shop.git"
    assert source.commit == f"acme/shop.git/{sha}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have the form git:"),
        (f"https://github.com/acme/shop/{SHA}/a", "must have the form git:"),
        ("git:" + "a" * 2000, "must have the form git:"),
        (f"git:acme/shop/{SHA}", "must have four parts"),
        (f"git:acme/shop/{SHA}/", "must have four parts"),
        (f"git:acme/shop/{SHA}//", "must have four parts"),
        (f"git:/shop/{SHA}/a", "the organization has characters"),
        (f"git:-acme/shop/{SHA}/a", "the organization has characters"),
        (f"git:acme/sh op/{SHA}/a", "the repository has characters"),
        (f"git:acme/{'a' * 101}/{SHA}/a", "the repository has characters"),
        ("git:acme/shop/main/a", "the commit must be its whole hash"),
        (f"git:acme/shop/{SHA}0/a", "the commit must be its whole hash"),
        (f"git:acme/shop/{SHA[1:]}/a", "the commit must be its whole hash"),
        (f"git:acme/shop/{SHA.upper()}/a", "the commit must be its whole hash"),
        (f"git:acme/shop/{SHA}\n/a", "the commit must be its whole hash"),
        (f"git:acme/shop/{SHA}/../a", "the path must name a file in the folder"),
        (f"git:acme/shop/{SHA}/-a", "the path has characters"),
    ],
)
def test_what_is_no_source_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        sources.parse(text, "'from'")
    assert caught.value.message.startswith("'from'")
    assert message in caught.value.message


def test_the_prefix_tells_a_source_from_a_path() -> None:
    assert sources.is_source("git:x") and sources.is_source("github:x")
    assert not sources.is_source("gitlab:x") and not sources.is_source("./git:x")


@pytest.mark.parametrize("text", ["", "hunter 2", "hunter2\n", "hünter2", "hunter2" * 143])
def test_a_token_that_no_header_can_hold_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="must be a token") as caught:
        sources.checked_token(text)
    assert "nter" not in caught.value.message
    assert sources.checked_token("hunter2~") == "hunter2~"
