"""The times at which this process may send requests to hosts, if datasets limit them."""

import threading
import time

import httpx

from caraway_core.concurrency.clocks import SecondsClock

_MOST_HOSTS = 1_000


class Turns:
    """Gives each request to a host the next free time."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._clock = clock
        self._next_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def wait_s(self, url: str, interval_s: float) -> float:
        """Return the time until a request may be sent, and reserve it; no interval, no wait."""
        if interval_s <= 0:
            return 0.0
        host = httpx.URL(url).host
        with self._lock:
            now_s = self._clock()
            if len(self._next_s) >= _MOST_HOSTS:
                self._next_s = {name: at for name, at in self._next_s.items() if at > now_s}
            at_s = max(now_s, self._next_s.get(host, now_s))
            self._next_s[host] = at_s + interval_s
        return at_s - now_s


wait_s = Turns().wait_s
