from collections.abc import Callable

import pytest

from caraway_management.domain import names
from caraway_management.domain.refusals import RefusedError

LONG = "a" * 256


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (names.check_handle, "a"), (names.check_handle, "A.b_c-9"),
        (names.check_project, "shop"), (names.check_project, "Shop-2-of-38"),
        (names.check_user, "ada@example.com"), (names.check_user, "9+x"),
    ],
)  # fmt: skip
def test_names_are_returned_as_they_are(check: Callable[[str], str], text: str) -> None:
    assert check(text) == text


@pytest.mark.parametrize(
    ("check", "text", "field"),
    [
        (names.check_handle, "", "name"), (names.check_handle, "a b", "name"),
        (names.check_handle, LONG, "name"), (names.check_handle, "a\n", "name"),
        (names.check_project, "abc", "name"), (names.check_project, "a_b_c", "name"),
        (names.check_project, "a" * 39, "name"),
        (names.check_secret, "1A", "name"), (names.check_secret, "A-B", "name"),
        (names.check_secret, LONG, "name"),
        (names.check_user, ".ada", "username"), (names.check_user, LONG, "username"),
    ],
)  # fmt: skip
def test_other_names_are_refused_with_their_field(
    check: Callable[[str], str], text: str, field: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        check(text)
    assert (refused.value.status, list(refused.value.fields)) == (400, [field])


def test_names_of_secrets_are_upper_case() -> None:
    assert names.check_secret("db_password") == "DB_PASSWORD"


@pytest.mark.parametrize(
    ("text", "username"),
    [
        ("Ada Lovelace", "AdaLovelace"),
        ("..x", "x"),
        ("", "user"),
        ("日本", "user"),
        ("a" * 300, "a" * 100),
    ],
)
def test_any_text_becomes_a_username(text: str, username: str) -> None:
    assert names.as_username(text) == username
    assert names.is_user(username)


@pytest.mark.parametrize("text", ["", "  ", "a" * 101, "a\nb", "a\u2028b", "a\0b", "\ud800"])
def test_texts_have_one_line_and_a_bounded_length(text: str) -> None:
    with pytest.raises(RefusedError, match="title"):
        names.check_text(text, "title")
    assert names.check_text("Ä b", "title") == "Ä b"


def test_names_are_compared_without_case() -> None:
    assert names.key("AdA") == names.key("ada")
