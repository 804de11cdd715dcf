"""Versions of accelerated datasets: as much of each as statements and tasks have asked for.

A version is a table without rows until somebody reads it. Then its chunks have to be in memory,
which the engine cannot see to: it says which are missing, is given them, and is asked again.

Where there is a log beside it, each position of the log is a table of its own. What a log does to
rows is not here: see `lineages` and `merging`.
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
