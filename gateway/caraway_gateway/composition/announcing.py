"""Prints the start of the runtime on the terminal."""

import time
from collections.abc import Mapping
from typing import TextIO

from caraway_scheduler.catalog.states import DatasetState

_RED, _GREEN, _YELLOW, _DIM = 31, 32, 33, 2


class Announcer:
    """Prints progress and the banner; says nothing where logs are JSON."""

    def __init__(self, out: TextIO | None) -> None:
        self._out = out
        self._styled = out is not None and out.isatty()
        self._started = time.monotonic()
        self._seen: dict[str, str] = {}

    def loading(self, count: int, manifest: str) -> None:
        self._print(f"Loading {count} dataset{'' if count == 1 else 's'} of {manifest}")

    def progress(self, state: DatasetState) -> None:
        """One line for each dataset, and again only when its state differs."""
        # Of an accelerated dataset the status tells how far its rows are, and this of its source.
        status = "" if state.is_accelerated else state.status
        text = f"{status}: {state.error.message if state.error else ''}"
        if self._seen.get(state.name) == text:
            return
        self._seen[state.name] = text
        if state.error is None:
            elapsed = f"{(time.monotonic() - self._started) * 1000:.0f} ms"
            more = "; its rows are being loaded" if state.is_being_loaded else ""
            elapsed = self._style(elapsed + more, _DIM)
            self._print(f"  {self._style('✓', _GREEN)} {state.name}  {elapsed}")
        else:
            code = self._style(state.error.code, _RED)
            self._print(f"  {self._style('✗', _RED)} {state.name}  {code} {state.error.message}")

    def notice(self, text: str) -> None:
        self._print(f"  {self._style('!', _YELLOW)} {text}")

    def ready(
        self,
        endpoints: Mapping[str, str],
        problems: int,
        loading: int = 0,
        *,
        has_console: bool = True,
    ) -> None:
        """Print the banner; the rows of datasets that are `loading` come later."""
        took = time.monotonic() - self._started
        counts = ((problems, "failed"), (loading, "being loaded"))
        told = [f"{count} {what}" for count, what in counts if count]
        state = self._style(", ".join(["up", *told]), _YELLOW)
        if not told:
            state = self._style("ready", _GREEN)
        self._print(f"\nCaraway is {state} in {took:.2f} s")
        if has_console:
            self._print(f"  {'Console':<8} {endpoints['HTTP']}/")
        for name, url in endpoints.items():
            self._print(f"  {name:<8} {url}")
        http = endpoints["HTTP"]
        insecure = "-k " if http.startswith("https") else ""
        self._print(
            f"\nTry it:  curl {insecure}{http}/v1/sql -H 'Accept: text/plain' -d 'SHOW TABLES'\n"
            f"Docs:    {http}/docs\n"
        )

    def stopping(self) -> None:
        self._print("\nStopping: no new work is taken; running queries may finish")

    def _style(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._styled else text

    def _print(self, text: str) -> None:
        if self._out is not None:
            print(text, file=self._out, flush=True)
