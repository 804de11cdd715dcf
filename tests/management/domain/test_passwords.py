import pytest

from caraway_management.domain import passwords
from caraway_management.domain.refusals import RefusedError


def test_equal_characters_of_keyboards_are_one() -> None:
    composed, decomposed = "\u00e4bcdefghijkl", "a\u0308bcdefghijkl"
    assert passwords.check_password(decomposed, "ada") == composed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("short", "12 to 256"),
        ("a1b2c3d4" * 33, "12 to 256"),
        ("abcdefghijk\x07l", "control"),
        ("abcdefghijk\ud800", "control"),
        ("abababababab", "easy to guess"),
        ("my-Ada-is-here-1", "easy to guess"),
    ],
)
def test_weak_passwords_are_refused(text: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason) as refused:
        passwords.check_password(text, "ADA")
    assert list(refused.value.fields) == ["password"]
