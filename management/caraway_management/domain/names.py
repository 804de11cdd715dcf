"""Rules for names: handles of organizations, projects, secrets, users."""

import re

from caraway_management.domain import refusals

HANDLE_PATTERN = r"^[A-Za-z0-9._-]{1,255}$"
PROJECT_PATTERN = r"^[A-Za-z0-9-]{4,38}$"
SECRET_PATTERN = r"^[a-zA-Z_][a-zA-Z0-9_]*$"
USER_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,254}$"
_SECRET_LENGTH = 255
_TEXT_LENGTH = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")


def is_handle(text: str) -> bool:
    """Return whether the text can be the handle of an organization."""
    return re.fullmatch(HANDLE_PATTERN.strip("^$"), text) is not None


def check_handle(text: str) -> str:
    """Return the handle of an organization.

    Raises:
        RefusedError: it is none.
    """
    if is_handle(text):
        return text
    raise refusals.invalid_field("name", "use 1 to 255 letters, digits, '.', '_' or '-'")


def check_project(text: str) -> str:
    """Return the name of a project.

    Raises:
        RefusedError: it is none.
    """
    if re.fullmatch(PROJECT_PATTERN.strip("^$"), text):
        return text
    raise refusals.invalid_field("name", "use 4 to 38 letters, digits or '-'")


def check_secret(text: str) -> str:
    """Return the name of a secret in upper case, as the runtime reads it.

    Raises:
        RefusedError: it is none.
    """
    if re.fullmatch(SECRET_PATTERN.strip("^$"), text) and len(text) <= _SECRET_LENGTH:
        return text.upper()
    raise refusals.invalid_field(
        "name", "use letters, digits and '_', at most 255, and begin with a letter or '_'"
    )


def is_user(text: str) -> bool:
    """Return whether the text can be the name of a user."""
    return re.fullmatch(USER_PATTERN.strip("^$"), text) is not None


def check_user(text: str) -> str:
    """Return the name of a user.

    Raises:
        RefusedError: it is none.
    """
    if is_user(text):
        return text
    raise refusals.invalid_field(
        "username", "use letters, digits, '.', '_', '@', '+' or '-', and begin with a letter"
    )


def as_username(text: str) -> str:
    """Return the name of a user that is like a text, which may be anything."""
    kept = re.sub(r"[^A-Za-z0-9._@+-]", "", text)[:_TEXT_LENGTH].lstrip("._@+-")
    return kept or "user"


def check_text(text: str, field: str, longest: int = _TEXT_LENGTH) -> str:
    """Return a text of one line, such as the name of a token or of a monitor.

    Raises:
        RefusedError: it is empty, too long, or has control characters.
    """
    if not text.strip():
        raise refusals.invalid_field(field, "must not be blank")
    if len(text) > longest:
        raise refusals.invalid_field(field, f"must have at most {longest} characters")
    if _CONTROL.search(text):
        raise refusals.invalid_field(field, "must not contain control characters")
    return text


def key(name: str) -> str:
    """Return the form in which names are compared: without case."""
    return name.lower()
