"""The best scores, with all that tie with the last."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from caraway_search.selecting import best


@given(st.lists(st.integers(0, 30), max_size=400), st.integers(-1, 12))
def test_best_with_ties(values: list[int], limit: int) -> None:
    scores = np.array(values, np.float64)
    least = sorted(values, reverse=True)[limit - 1] if 0 < limit <= len(values) else -1
    expected = [n for n, value in enumerate(values) if value >= least] if limit > 0 else []
    assert best(scores, limit).tolist() == expected
