"""Versions of accelerated datasets, loaded as far as statements and tasks read them.

A version is a table without rows until it is read. Then its chunks have to be in memory, but the
engine cannot load them. It reports which chunks are missing; the caller loads them and retries.

If a version has a log, each position of the log is a table of its own. How changes are applied to
rows is in `lineages` and `merging`.
"""

from caraway_engine.stored.version import StoredVersion
from caraway_engine.stored.views import StoredShare, VersionView
from caraway_engine.stored.wanted import ChunksAwayError, MissingChunks, check_present

__all__ = [
    "ChunksAwayError",
    "MissingChunks",
    "StoredShare",
    "StoredVersion",
    "VersionView",
    "check_present",
]
