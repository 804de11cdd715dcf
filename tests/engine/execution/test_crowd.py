"""The statements that compute at once are counted, whichever way they end."""

import pytest

from caraway_engine.execution.crowd import Crowd


def test_is_dense_while_as_many_streams_compute_as_there_are_cores() -> None:
    crowd = Crowd(2)
    first, second = object(), object()
    with crowd.entered(first):
        assert not crowd.is_dense
        with pytest.raises(ValueError, match="ended"), crowd.entered(second):
            assert crowd.is_dense
            raise ValueError("ended")
        assert not crowd.is_dense


@pytest.mark.parametrize(("running", "share"), [(0, 1.0), (1, 1.0), (2, 1.0), (4, 0.5), (8, 0.25)])
def test_streams_share_the_cores(running: int, share: float) -> None:
    crowd = Crowd(2)
    entered = [crowd.entered(number) for number in range(running)]
    for each in entered:
        each.__enter__()
    assert crowd.share == share
    for each in entered:
        each.__exit__(None, None, None)
    assert crowd.share == 1.0
