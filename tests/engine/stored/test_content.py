"""The lock between slices of work goes to the thread that asked first."""

from threading import Thread

from caraway_engine.stored.content import FairLock
from tests.kit.deadlines import until


def test_who_waits_has_it_before_who_gave_it_away() -> None:
    turns, order = FairLock(), list[str]()

    def take(name: str) -> None:
        with turns:
            order.append(name)

    turns.acquire()
    threads = []
    for name in ("first", "second"):
        threads.append(Thread(target=take, args=(name,), daemon=True))
        threads[-1].start()
        until(lambda: len(turns._waiting) == len(threads), "it waits")
    turns.release()
    take("third")
    for thread in threads:
        thread.join(60)

    assert order == ["first", "second", "third"]


def test_nobody_waits_who_does_not_want_to() -> None:
    turns = FairLock()

    assert turns.acquire(blocking=False)
    assert not turns.acquire(blocking=False)
    turns.release()
    assert turns.acquire(blocking=False)
