"""Reciprocal rank fusion: joins ranked lists by the places of their rows, not by their scores."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Generic, NamedTuple, TypeVar

from caraway_core.sqltext.searching import RRF_K
from caraway_search.errors import InvalidSearchError

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RankedList(Generic[Key]):
    """Keys of rows, best first. Of a key that is there twice, only the first place counts."""

    keys: Sequence[Key]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ExponentialDecay:
    """Makes old rows count less: e^(-constant · age / scale)."""

    constant: float = 0.01
    scale_s: float = 86400

    def __post_init__(self) -> None:
        if not (0 < self.scale_s < math.inf and 0 <= self.constant < math.inf):
            raise InvalidSearchError(
                "recency decay needs a scale above 0 seconds, and a constant of 0 or more"
            )

    def factor(self, age_s: float) -> float:
        """The factor for a row of an age; rows of the future are new."""
        if self.constant == 0:
            return 1.0  # also for rows without an age, whose product would be no number
        return math.exp(-self.constant * max(age_s, 0.0) / self.scale_s)


@dataclass(frozen=True, slots=True)
class LinearDecay:
    """Makes old rows count less, and rows older than a window not at all."""

    window_s: float = 86400

    def __post_init__(self) -> None:
        if not 0 < self.window_s < math.inf:
            raise InvalidSearchError("recency decay needs a window above 0 seconds")

    def factor(self, age_s: float) -> float:
        """The factor for a row of an age; rows of the future are new."""
        return max(0.0, 1 - max(age_s, 0.0) / self.window_s)


Decay = ExponentialDecay | LinearDecay


@dataclass(frozen=True, slots=True)
class Recency(Generic[Key]):
    """The ages of rows in seconds, and the decay of their scores.

    A row without an age counts as very old.
    """

    decay: Decay
    ages_s: Mapping[Key, float] = field(repr=False)

    def factor(self, key: Key) -> float:
        """The factor for a row."""
        return self.decay.factor(self.ages_s.get(key, math.inf))


class FusedRow(NamedTuple, Generic[Key]):
    """A row that is in one of the lists at least."""

    key: Key
    score: float


def fuse(
    lists: Sequence[RankedList[Key]], k: float = RRF_K, recency: Recency[Key] | None = None
) -> list[FusedRow[Key]]:
    """Fuse ranked lists: the sum of weight / (k + place), places from 1, times the decay.

    Rows of equal scores are in the order in which the lists first name them.

    Raises:
        InvalidSearchError: `k` or a weight is negative or not finite.
    """
    if not 0 <= k < math.inf:
        raise InvalidSearchError(f"k of a fusion is a number of 0 or more, not {k}")
    scores: dict[Key, float] = {}
    for ranked in lists:
        if not 0 <= ranked.weight < math.inf:
            raise InvalidSearchError(f"a rank weight is a number of 0 or more, not {ranked.weight}")
        for place, key in enumerate(dict.fromkeys(ranked.keys), 1):
            scores[key] = scores.get(key, 0.0) + ranked.weight / (k + place)
    if recency is not None:
        scores = {key: score * recency.factor(key) for key, score in scores.items()}
    best = sorted(scores.items(), key=lambda item: item[1], reverse=True)
    return list(starmap(FusedRow, best))
