"""`caraway ingest`: apply a file of change events to a dataset and show the rate."""

import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from caraway.cli import options
from caraway.terminal import explanations
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    from caraway.client import Client

_REPORT_INTERVAL_S = 2.0


@options.connected
def ingest(
    client: "Client",
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A dataset that accepts change events.")
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Change events, one per line; - is stdin.")
    ],
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", min=1, max=100_000, help="Events per request.")
    ] = 1000,
) -> None:
    """Apply change events to a dataset in order; each request is durable before the next."""
    with _opened(file) as lines:
        applied, requests, started = 0, 0, time.monotonic()
        try:
            for count in _report_progress(client.ingests(name, lines, batch), name):
                applied, requests = applied + count, requests + 1
        except CarawayError as error:
            if not requests:
                raise
            print(_so_far(name, applied, requests), file=sys.stderr)
            raise CarawayError(f"request {requests + 1}: {explanations.explain(error)}") from error
        except KeyboardInterrupt:
            # The server may still apply the request that was being sent.
            print(f"{_so_far(name, applied, requests)}, possibly one more", file=sys.stderr)
            raise typer.Exit(130) from None
    print(f"{name}: {_rate(applied, time.monotonic() - started)}")


@contextmanager
def _opened(file: Path) -> Iterator[Iterable[bytes]]:
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    opened: BinaryIO
    with file.open("rb") as opened:
        yield opened


def _report_progress(counts: Iterable[int], name: str) -> Generator[int, None, None]:
    """Pass the counts through and print the progress every few seconds."""
    applied, started = 0, time.monotonic()
    reported = started
    for count in counts:
        yield count
        applied, now = applied + count, time.monotonic()
        if now - reported >= _REPORT_INTERVAL_S:
            reported = now
            print(f"{name}: {_rate(applied, now - started)}", file=sys.stderr, flush=True)


def _so_far(name: str, applied: int, requests: int) -> str:
    return f"{name}: {applied:,} changes applied (requests: {requests})"


def _rate(applied: int, passed_s: float) -> str:
    return f"{applied:,} changes in {passed_s:.1f} s, {applied / max(passed_s, 1e-6):,.0f} rows/s"
