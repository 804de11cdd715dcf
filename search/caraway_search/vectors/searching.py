"""Searches vector segments: estimates where there are codes, exact scores for what may win."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caraway_search.hits import Hits
from caraway_search.selecting import best
from caraway_search.vectors.exact import QueryVector
from caraway_search.vectors.looking import Look
from caraway_search.vectors.segment import VectorSegment

Flags = NDArray[np.bool_]

_FEWEST_ESTIMATES = 64
_MANY_ESTIMATES = 512
"""So many take about as long as one; what has to be asked for again takes twice as long."""
_ESTIMATES_A_ROW = 20
"""How many vectors without clusters may be among the best, for each row that is wanted."""


def search(
    segments: Sequence[VectorSegment],
    query: QueryVector,
    limit: int,
    masks: Sequence[Flags | None] | None = None,
) -> list[Hits]:
    """The best rows of some segments of one table, of those that the masks tell.

    The hits of all segments together have the best `limit` rows, and rows that tie with the last.

    Raises:
        InvalidSearchError: a segment is of vectors of another length.
    """
    looks = [
        Look.at(segment, query, mask)
        for segment, mask in zip(segments, masks or [None] * len(segments), strict=True)
    ]
    for look in looks:
        if not look.has_estimates:
            look.score_all(limit)
    coded = [look for look in looks if look.has_estimates]
    if coded and limit > 0:
        _search_estimates(looks, coded, limit)
    bar = _bar(looks, limit)
    return [look.hits(bar) for look in looks]


def _search_estimates(looks: Sequence[Look], coded: Sequence[Look], limit: int) -> None:
    """Score vectors exactly until no estimate tells that another one may be among the best."""
    for look in coded:
        look.estimate(
            max(_FEWEST_ESTIMATES, (_MANY_ESTIMATES + _ESTIMATES_A_ROW * limit) // len(coded))
        )
    estimates = np.concatenate([look.estimates for look in coded]).astype(np.float64)
    least = estimates[best(estimates, 2 * limit)].min(initial=np.inf)
    for look in coded:
        look.score_estimated(float(least))
    bar, raised = -np.inf, _bar(looks, limit)
    while raised > bar or bar == -np.inf:
        bar = raised
        for look in coded:
            look.score_candidates(bar, limit)
        raised = _bar(looks, limit)
        if raised == -np.inf:
            return


def _bar(looks: Sequence[Look], limit: int) -> float:
    """The score of the last of the best rows so far; fewer rows than wanted have no bar."""
    scores = np.concatenate([np.zeros(0), *(look.row_scores().scores for look in looks)])
    if limit <= 0 or len(scores) < limit:
        return np.inf if limit <= 0 else -np.inf
    return float(scores[best(scores, limit)].min())
