"""API keys as the manifest writes them: the key, and after a colon its rights."""

from typing import Literal

Access = Literal["ro", "rw", "admin"]
_WRITING: tuple[Access, ...] = ("rw", "admin")


def split_key(expanded: str) -> tuple[str, Access]:
    """Split a key, with its secrets filled in, from its suffix; none means read-only.

    Spaces and line ends around both are dropped: files of secrets often end with one, and HTTP
    does not transport them.
    """
    expanded = expanded.strip()
    for access in _WRITING:
        if expanded.endswith(f":{access}"):
            return expanded.removesuffix(f":{access}").rstrip(), access
    return expanded.removesuffix(":ro").rstrip(), "ro"
