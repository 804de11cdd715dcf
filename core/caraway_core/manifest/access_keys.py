"""API keys as the manifest writes them: the key, and after a colon what it may do."""

from typing import Literal

Access = Literal["ro", "rw"]


def split_key(expanded: str) -> tuple[str, Access]:
    """Split a key, with its secrets filled in, from its suffix; none means read-only."""
    if expanded.endswith(":rw"):
        return expanded.removesuffix(":rw"), "rw"
    return expanded.removesuffix(":ro"), "ro"
