"""The times at which requests may be sent."""

from caraway_plugins.sources.api.turns import Turns


def test_requests_to_one_host_get_one_time_after_the_other() -> None:
    now_s = [100.0]
    turns = Turns(lambda: now_s[0])
    assert [turns.wait_s("http://a/x", 2), turns.wait_s("http://a/y", 2)] == [0, 2]
    assert turns.wait_s("http://b/x", 2) == 0
    now_s[0] = 103
    assert turns.wait_s("http://a/x", 2) == 1
    now_s[0] = 200
    assert turns.wait_s("http://a/x", 2) == 0


def test_a_dataset_without_a_limit_does_not_wait() -> None:
    turns = Turns(lambda: 0.0)
    assert [turns.wait_s("http://a/x", 0) for _ in range(3)] == [0, 0, 0]
