"""The lag of a followed dataset, from the batches of its source."""

from datetime import UTC, datetime, timedelta

from caraway_acceleration.changes.catching_up import QUIET, SourceProgress

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


class Clock:
    """A time that the test moves."""

    def __init__(self) -> None:
        self.now = NOON
        self.progress = SourceProgress(lambda: self.now)
        self.progress.note_start()

    def after(self, seconds: float) -> float | None:
        self.now += timedelta(seconds=seconds)
        return self.progress.behind_s

    def batch(self, age_s: float | None, *, is_whole: bool = True) -> None:
        self.progress.receive()
        made_at = None if age_s is None else self.now - timedelta(seconds=age_s)
        self.progress.apply(made_at, is_whole=is_whole)


def test_nothing_is_known_before_the_source_has_sent_something() -> None:
    assert Clock().after(100) is None


def test_a_source_that_is_quiet_has_no_more_changes() -> None:
    clock = Clock()
    clock.batch(None)
    assert clock.after(1) is None
    assert clock.after(QUIET.total_seconds()) == 0.0


def test_while_changes_come_the_last_applied_one_counts() -> None:
    clock = Clock()
    clock.batch(3_600)
    assert clock.after(1) == 3_601
    clock.batch(10)
    assert clock.after(1) == 11
    clock.batch(20)
    assert clock.after(0) == 11


def test_a_batch_that_is_not_applied_leaves_the_dataset_behind() -> None:
    clock = Clock()
    clock.batch(0)
    assert clock.after(60) == 0.0
    clock.progress.receive()
    assert clock.after(30) == 30
    clock.progress.receive()
    clock.progress.apply(clock.now - timedelta(seconds=30), is_whole=True)
    assert clock.after(30) == 60


def test_part_of_a_transaction_does_not_bring_the_dataset_forward() -> None:
    clock = Clock()
    clock.batch(5, is_whole=False)
    assert clock.after(60) is None


def test_a_source_that_is_lost_leaves_the_dataset_behind() -> None:
    clock = Clock()
    clock.batch(0)
    assert clock.after(10) == 0.0
    clock.progress.lose()
    clock.progress.note_start()
    assert clock.after(90) == 90


def test_another_scheduler_knows_what_this_one_has_forgotten() -> None:
    clock = Clock()
    clock.batch(0)
    clock.progress.forget()
    assert clock.after(90) is None


def test_clocks_may_differ() -> None:
    clock = Clock()
    clock.batch(-30)
    assert clock.after(1) == 1
