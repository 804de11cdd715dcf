"""Writes files of a cache folder whole, and removes those that are no longer current."""

import os
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import BinaryIO


def write(path: Path, fill: Callable[[BinaryIO], None]) -> None:
    """Fill a temporary file and rename it, so that no partial file is ever read."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".download-")
    try:
        with os.fdopen(handle, "wb") as stream:
            fill(stream)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def keep_only(folder: Path, names: Collection[str]) -> None:
    """Remove all files of a folder except those with these names."""
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink(missing_ok=True)
