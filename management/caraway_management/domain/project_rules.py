"""Rules for the texts of a project: tags, description, branch."""

import re
from collections.abc import Mapping

from caraway_management.domain import names, refusals

VISIBILITIES = ("private", "public")
MOST_TAGS = 50
MOST_DESCRIPTION = 1_000
_TAG_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")
_MOST_TAG_VALUE = 255
# The rules of `git check-ref-format`.
_BRANCH = re.compile(
    r"(?!-)(?!.*(\.\.|//|@\{|\.lock(/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]+"
)


def check_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of a project.

    Raises:
        RefusedError: one of them cannot be, or there are too many.
    """
    if len(tags) > MOST_TAGS:
        raise refusals.invalid_field("tags", f"a project has at most {MOST_TAGS} tags")
    for key, value in tags.items():
        if not _TAG_KEY.fullmatch(key):
            raise refusals.invalid_field(
                "tags", "names of tags are 1 to 63 letters, digits, '.', '_', '/' or '-'"
            )
        if value:
            names.check_text(value, f"tags.{key}", _MOST_TAG_VALUE)
    return dict(tags)


def check_description(text: str) -> str:
    """Return the description of a project, which may have several lines.

    Raises:
        RefusedError: it is too long, or has control characters.
    """
    if line := text.replace("\n", " ").replace("\r", " ").replace("\t", " ").strip():
        names.check_text(line, "description", MOST_DESCRIPTION)
    return text.strip()


def check_branch(text: str, field: str = "production_branch") -> str:
    """Return the name of a git branch. It never reads as an option of git.

    Raises:
        RefusedError: git has no such names.
    """
    if len(text) > 255 or text.startswith(("/", ".")) or not _BRANCH.fullmatch(text):
        raise refusals.invalid_field(field, "must be the name of a git branch")
    return text
