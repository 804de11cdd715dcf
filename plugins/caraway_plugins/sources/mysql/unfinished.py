"""Names of tables that a statement is filling; catalogs do not list them."""

import re
import secrets

_PREFIX = "caraway_new_"
_UNFINISHED = re.compile(rf"{_PREFIX}[0-9a-f]{{16}}")


def new_name() -> str:
    """Return a name that no other table has."""
    return f"{_PREFIX}{secrets.token_hex(8)}"


def is_unfinished(name: str) -> bool:
    """Return whether a table is one that a statement is filling, or has left."""
    return _UNFINISHED.fullmatch(name) is not None
