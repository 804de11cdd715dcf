"""Searches vector segments: estimates where there are codes, exact scores for what may win."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from caraway_search.hits import Hits
from caraway_search.selecting import best
from caraway_search.vectors.exact import QueryVector
from caraway_search.vectors.looking import Look
from caraway_search.vectors.segment import VectorSegment

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

_FEWEST_ESTIMATES = 64
_MANY_ESTIMATES = 512
"""This number takes about as long as one estimate; a second request takes twice as long."""
_ESTIMATES_A_ROW = 14
"""Estimates for each requested row: the usual number of candidates without clusters."""
_MANY_ROWS = 50
"""Of fewer rows each counts, and not only their share."""
_FAR = 8.0
"""The error of an estimate is never larger, in standard deviations."""
_PARTS_OF_Z = np.linspace(0.3, 1.0, 15)


def search(
    segments: Sequence[VectorSegment],
    query: QueryVector,
    limit: int,
    masks: Sequence[Flags | None] | None = None,
) -> list[Hits]:
    """Return the best rows of some segments of one table, of those in the masks.

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
        bar = _search_estimates(looks, coded, limit)
    else:
        bar = _bar(_leaders(looks, limit), limit)
    return [look.hits(bar) for look in looks]


def _search_estimates(looks: Sequence[Look], coded: Sequence[Look], limit: int) -> float:
    """Score vectors exactly until no estimate of another one reaches the best.

    Returns the score of the last of the best.
    """
    for look in coded:
        look.estimate(
            max(_FEWEST_ESTIMATES, (_MANY_ESTIMATES + _ESTIMATES_A_ROW * limit) // len(coded))
        )
    likely = np.concatenate([look.likely for look in coded]).astype(np.float64)
    least = likely[best(likely, 2 * limit)].min(initial=np.inf)
    for look in coded:
        look.score_likely(float(least))
    bar, leaders = -np.inf, _leaders(looks, limit)
    raised = _bar(leaders, limit)
    while raised > bar or bar == -np.inf:
        bar = raised
        for look in coded:
            recall = look.segment.spec.recall
            look.score_candidates(bar, limit, needed_z(recall, look.apart(leaders, bar)))
        leaders = _leaders(looks, limit)
        raised = _bar(leaders, limit)
        if raised == -np.inf:
            break
    return raised


def needed_z(recall: float, apart: Floats) -> float:
    """Return the allowed error of estimates, in standard deviations, for a share of the best rows.

    `apart` holds the distance of each of the best rows from the bar, in deviations. A row at the
    bar is missed if its estimate is wrong by more than the result, and rows far above it hardly
    ever.
    """
    most = NormalDist().inv_cdf(recall)
    if most <= 0 or len(apart) < _MANY_ROWS:
        return most
    tried = most * _PARTS_OF_Z
    beyond = np.minimum(tried[:, np.newaxis] + apart, _FAR)
    # The normal distribution, with an error below 0.00015.
    missed = 1 / (1 + np.exp(1.5976 * beyond + 0.07056 * beyond**3))
    enough = np.flatnonzero(missed.mean(axis=1) <= 1 - recall)
    return float(tried[enough[0]]) if len(enough) else most


def _leaders(looks: Sequence[Look], limit: int) -> Floats:
    """The scores of the best rows so far, in no order."""
    scores = np.concatenate([np.zeros(0), *(look.row_scores().scores for look in looks)])
    return scores[best(scores, max(limit, 0))]


def _bar(leaders: Floats, limit: int) -> float:
    """The score of the last of the best rows so far; fewer rows than wanted have no bar."""
    if limit <= 0 or len(leaders) < limit:
        return np.inf if limit <= 0 else -np.inf
    return float(leaders.min())
