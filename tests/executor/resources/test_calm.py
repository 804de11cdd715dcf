"""Processes that work on after a stop are distinguished from those that have work."""

from caraway_executor.resources.calm import AfterStop, Idle

AFTER_S = 2.0


def looks(*seen: tuple[float, float, int, int], restarted_s: float = 1e9) -> list[bool]:
    """Look at a process each second: at its processor time, its work, and how often it stopped."""
    following = AfterStop(AFTER_S, 0.9)
    return [
        following.look(1 + (now_s >= restarted_s), now_s, wanted_s, active=active, stopped=stopped)
        for now_s, wanted_s, active, stopped in seen
    ]


def test_process_that_works_on_after_a_stop_is_told() -> None:
    assert looks((0, 0, 0, 1), (1, 1, 0, 1), (2, 2, 0, 1)) == [False, False, True]


def test_process_that_rests_is_not_looked_at_until_the_next_stop() -> None:
    rests = [(0, 0, 0, 1), (1, 0.1, 0, 1), (2, 0.2, 0, 1)]
    # It is busy later with work that was not stopped.
    busy = [(3, 1.2, 0, 1), (4, 2.2, 0, 1), (5, 3.2, 0, 1), (6, 4.2, 0, 1)]
    assert not any(looks(*rests, *busy))
    assert looks(*rests, (3, 1.2, 0, 2), (4, 2.2, 0, 2), (5, 3.2, 0, 2))[-1]


def test_process_with_other_work_is_judged_when_that_is_done() -> None:
    working = [(0, 0, 1, 1), (1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 1, 1)]
    assert not any(looks(*working))
    assert looks(*working, (4, 4, 0, 1), (5, 5, 0, 1), (6, 6, 0, 1))[-1]


def test_process_that_was_never_told_to_stop_may_be_busy() -> None:
    assert not any(looks((0, 0, 0, 0), (1, 1, 0, 0), (2, 2, 0, 0), (3, 3, 0, 0)))


def test_next_process_begins_anew() -> None:
    rests = [(0, 0, 0, 3), (1, 0.1, 0, 3), (2, 0.2, 0, 3)]
    # It has stopped nothing, and is busy with its start.
    starts = [(3, 0, 0, 0), (4, 1, 0, 0), (5, 2, 0, 0), (6, 3, 0, 0)]
    assert not any(looks(*rests, *starts, restarted_s=3))
    # Its third stop is not taken for that of the one before.
    stops = [(7, 3, 0, 3), (8, 4, 0, 3), (9, 5, 0, 3)]
    assert looks(*rests, *starts, *stops, restarted_s=3)[-1]


def test_process_that_works_a_little_is_left_alone() -> None:
    # It takes a new catalog now and then.
    assert not any(looks((0, 0, 0, 1), (1, 0.6, 0, 1), (2, 1.2, 0, 1), (3, 1.8, 0, 1)))


def idle(*seen: tuple[float, float, int, int]) -> Idle:
    """Look at the times, the wanted processor time, and the running and begun works."""
    made = Idle()
    for now_s, wanted_s, active, begun in seen:
        made.look(now_s, wanted_s, active=active, begun=begun)
    return made


def test_time_without_work_is_added_up() -> None:
    found = idle((0, 0, 0, 5), (1, 2, 0, 5), (2, 2, 1, 6), (3, 9, 0, 6), (4, 10, 0, 6))
    assert (found.passed_s, found.cores) == (2, 1.5)


def test_what_work_wants_is_not_counted() -> None:
    assert idle((0, 0, 0, 5), (1, 1, 1, 6), (2, 2, 0, 6), (3, 3, 1, 7)).passed_s == 0


def test_work_between_two_looks_is_not_counted() -> None:
    found = idle((0, 0, 0, 5), (1, 1, 0, 8), (2, 2, 0, 9))
    assert (found.passed_s, found.cores) == (0, 0)
