"""The main loop of the shell: read input, run it, print the result."""

import sys
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TextIO

from prompt_toolkit import PromptSession

from caraway.client import Client
from caraway.rows.formats import Format
from caraway.shell import commands, plans, prompt
from caraway.shell.answers import PRESENTATIONS, Presentation
from caraway.shell.completion import ShellCompleter
from caraway.shell.history import open_history
from caraway.shell.names import LineRows, NameCache
from caraway.terminal import explanations
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError
from caraway_core.sqltext import explained, splitting

GREETING = "Connected to {endpoint}. End statements with ';'. Type .help for help, .quit to exit."

NOT_READY = "Not everything is loaded yet; `caraway ready --verbose` shows what is missing."


@dataclass(slots=True)
class Shell:
    """Runs input. Its fields are the settings that dot commands change."""

    client: Client
    out: BinaryIO
    err: TextIO
    format: Format = Format.TABLE
    is_timed: bool = True
    has_ended: bool = False
    clock: SecondsClock = field(default=time.monotonic)

    def handle(self, text: str) -> None:
        """Run a dot command or the statements in `text`, and print errors."""
        try:
            if text.lstrip().startswith((".", "\\")):
                commands.run_command(self, text.strip().rstrip(";"))
            else:
                self.run_statements(splitting.split(text).all())
        except KeyboardInterrupt:
            self.print_error("cancelled")
        except CarawayError as error:
            self.print_error(f"error: {explanations.explain(error)}")

    def run_statements(self, script: Iterable[str]) -> None:
        """Run statements in order, up to the first that fails."""
        for statement in script:
            if statement.lower() in ("quit", "exit"):
                self.has_ended = True
                return
            if self.format is Format.TABLE and explained.parse(statement) is not None:
                self.explain(statement)
            else:
                self.run_statement(statement, PRESENTATIONS[self.format])

    def explain(self, statement: str) -> None:
        """Run an EXPLAIN and draw its plans as trees."""
        started_at = self.clock()
        self.print_line(plans.draw(LineRows(self.client).sql(statement)))
        if self.is_timed:
            self.print_line(f"({self.clock() - started_at:.3f} s)")

    def run_statement(self, statement: str, presentation: Presentation) -> None:
        """Run one statement and print its result.

        An exception closes the connection, which cancels the statement on the server.
        """
        started_at = self.clock()
        view = presentation.view()
        last = b"\n"
        request_format = presentation.request_format
        with closing(self.client.sql_chunks(statement, None, request_format)) as chunks:
            for part in view.show(chunks):
                self.out.write(part)
                self.out.flush()
                last = part[-1:] or last
        elapsed = f", {self.clock() - started_at:.3f} s" if self.is_timed else ""
        rows = "1 row" if view.rows == 1 else f"{view.rows} rows"
        line_end = "" if last == b"\n" else "\n"
        self.print_line(f"{line_end}({rows}{elapsed})")

    def print_line(self, text: str) -> None:
        """Print a line to the output."""
        self.out.write(f"{text}\n".encode())
        self.out.flush()

    def print_error(self, text: str) -> None:
        """Print a line to the error output."""
        print(text, file=self.err, flush=True)


def open_shell(client: Client, format: Format, history: Path) -> int:
    """Run the shell until .quit or Ctrl-D and return the exit code.

    Raises:
        UnreachableError, ApiError: no runtime responds at the endpoint.
    """
    shell = Shell(client, sys.stdout.buffer, sys.stderr, format)
    is_ready, _ = client.readiness()
    names = NameCache(LineRows(client), time.monotonic)
    completer = ShellCompleter(names, dict(commands.ARGUMENTS))
    session = prompt.session(completer, open_history(history))
    shell.print_line(GREETING.format(endpoint=client.endpoint))
    if not is_ready:
        shell.print_error(NOT_READY)
    loop(shell, session)
    return 0


def loop(shell: Shell, session: "PromptSession[str]") -> None:
    """Read and run input until the shell ends. Ctrl-C at the prompt discards the input."""
    while not shell.has_ended:
        try:
            text = session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        shell.handle(text)
