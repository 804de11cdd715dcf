"""Runs statements over HTTP with Arrow results, bypassing the results cache."""

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

import pyarrow as pa

_HEADERS = {
    "Content-Type": "text/plain",
    "Accept": "application/vnd.apache.arrow.stream",
    "Cache-Control": "no-cache",
}


class FailedError(Exception):
    """A statement was rejected, failed or timed out."""


@dataclass(frozen=True, slots=True)
class Answer:
    rows: pa.Table
    seconds: float


def ask(url: str, sql: str, limit_s: float = 120.0) -> Answer:
    """Run a statement on a new connection.

    Raises:
        FailedError: the statement failed.
    """
    request = urllib.request.Request(f"{url}/v1/sql", sql.encode(), _HEADERS)
    began_s = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=limit_s) as answer:
            rows = pa.ipc.open_stream(answer).read_all()
    except urllib.error.HTTPError as exc:
        raise FailedError(exc.read().decode(errors="replace").strip()) from exc
    except (OSError, http.client.HTTPException, pa.ArrowInvalid) as exc:
        raise FailedError(f"{type(exc).__name__}: {exc}") from exc
    return Answer(rows, time.perf_counter() - began_s)


class Connection:
    """A persistent connection, for statements so short that connecting would affect the time."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)

    def time(self, sql: str) -> float:
        """Run a statement and return its duration in seconds.

        Raises:
            FailedError: the statement failed.
        """
        began_s = time.perf_counter()
        self._connection.request("POST", "/v1/sql", sql.encode(), _HEADERS)
        answer = self._connection.getresponse()
        body = answer.read()
        seconds = time.perf_counter() - began_s
        if answer.status != http.client.OK:
            raise FailedError(body.decode(errors="replace"))
        return seconds
