"""What a person sees on the terminal while the runtime starts."""

import json
import os
import time
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from caraway_core.settings import Address
from caraway_scheduler.catalog.states import DatasetState


class Announcer:
    """Prints progress and the banner; says nothing where logs are JSON."""

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self._started = time.monotonic()
        self._seen: dict[str, str] = {}

    def loading(self, count: int, manifest: str) -> None:
        self._print(f"Loading {count} dataset{'' if count == 1 else 's'} of [bold]{manifest}[/]")

    def progress(self, state: DatasetState) -> None:
        """One line for each dataset, and again only when its state differs."""
        text = f"{state.status}: {state.error.message if state.error else ''}"
        if self._seen.get(state.name) == text:
            return
        self._seen[state.name] = text
        elapsed = f"[dim]{(time.monotonic() - self._started) * 1000:.0f} ms[/]"
        if state.error is None:
            self._print(f"  [green]✓[/] {escape(state.name)}  {elapsed}")
        else:
            self._print(
                f"  [red]✗[/] {escape(state.name)}  [red]{state.error.code}[/] "
                f"{escape(state.error.message)}"
            )

    def notice(self, text: str) -> None:
        self._print(f"  [yellow]![/] {escape(text)}")

    def ready(self, endpoints: Mapping[str, str], problems: int) -> None:
        took = time.monotonic() - self._started
        state = "[bold green]ready[/]" if not problems else f"[bold yellow]up, {problems} failed[/]"
        self._print(f"\nCaraway is {state} in {took:.2f} s")
        for name, url in endpoints.items():
            self._print(f"  {name:<8} {url}")
        http = endpoints["HTTP"]
        insecure = "-k " if http.startswith("https") else ""
        self._print(
            f"\nTry it:  curl {insecure}{http}/v1/sql -H 'Content-Type: text/plain' "
            "-H 'Accept: text/plain' -d 'SHOW TABLES'\n"
            f"Docs:    {http}/docs\n"
        )

    def stopping(self) -> None:
        self._print("\nStopping: no new work is taken; running queries may finish")

    def _print(self, text: str) -> None:
        if self._console:
            self._console.print(text, highlight=False, soft_wrap=True)


def write_ready(fd: int | None, addresses: Mapping[str, Address]) -> None:
    """Tell the parent process the addresses, as one line of JSON, and close the pipe."""
    if fd is None:
        return
    line = json.dumps({name: str(address) for name, address in addresses.items()})
    with os.fdopen(fd, "w") as pipe:
        pipe.write(line + "\n")
