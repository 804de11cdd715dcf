"""Cuts large tables of databases at values of their key, so that several tasks can read them."""

from collections.abc import Sequence
from itertools import pairwise

from caraway_core.tables import RemoteSplit

SPLIT_BYTES = 16 * 1024 * 1024
MOST_SPLITS = 32


def cut(column: str, values: Sequence[int], size_bytes: int) -> tuple[RemoteSplit, ...]:
    """Cut a table at some of these values, between which are about as many rows each.

    A table of less than two parts is not cut.
    """
    known = sorted(set(values))
    count = min(size_bytes // SPLIT_BYTES, MOST_SPLITS, len(known) - 1)
    if count < 2:
        return ()
    cuts = [known[number * (len(known) - 1) // count] for number in range(1, count)]
    edges = [None, *dict.fromkeys(cuts), None]
    share = size_bytes // (len(edges) - 1)
    return tuple(RemoteSplit(column, low, high, share) for low, high in pairwise(edges))
