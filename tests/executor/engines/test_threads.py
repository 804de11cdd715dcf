"""Threads know the processor time of the work of each call."""

import threading
import time

from caraway_executor.engines.threads import CallThreads, current


def test_work_that_computes_uses_time_and_work_that_waits_does_not() -> None:
    computing, waiting = threading.Event(), threading.Event()
    threads = CallThreads(2, "planning")

    def compute() -> None:
        while time.thread_time() < 0.2:
            pass
        computing.set()
        while not waiting.is_set():
            pass

    for number, work in ((1, compute), (2, waiting.wait)):
        token = current.set(number)
        threads.submit(work)
        current.reset(token)
    try:
        assert computing.wait(60)
        assert threads.used_s(1) >= 0.1
        assert threads.used_s(2) < 0.1
        assert threads.used_s(3) == 0.0
    finally:
        waiting.set()
        threads.shutdown()
