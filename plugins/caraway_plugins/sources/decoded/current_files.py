"""Files as they are when they are read: they may have changed since they were listed."""

from caraway_core.errors import DatasetError
from caraway_plugins.sources.storage import FoundFile, Storage


def find(storage: Storage, listed: FoundFile) -> FoundFile:
    """Return a file with its present size, so that no part of another content is read.

    Raises:
        DatasetError: it was removed.
    """
    file = storage.find(listed.path)
    if file is None:
        title = storage.title(listed.path)
        raise DatasetError("not_found", f"'{title}' was removed while it was to be read; try again")
    return file
