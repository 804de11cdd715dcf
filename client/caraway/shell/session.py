"""The shell's loop: read a line, run it, print what came back."""

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TextIO

from prompt_toolkit import PromptSession

from caraway import explanations
from caraway.client import Client
from caraway.formats import Format
from caraway.shell import commands, prompt
from caraway.shell.answers import PRESENTATIONS, Presentation
from caraway.shell.completion import ShellCompleter
from caraway.shell.history import open_history
from caraway.shell.names import NamesOfServer
from caraway_core.errors import CarawayError
from caraway_core.sqltext import splitting

GREETING = "Connected to {endpoint}. End statements with ';'. Type .help for help, .quit to leave."

NOT_READY = "Not everything is loaded yet; `caraway ready --verbose` tells what is missing."


@dataclass(slots=True)
class Shell:
    """Runs what was typed; its fields are what the dot commands change."""

    client: Client
    out: BinaryIO
    err: TextIO
    format: Format = Format.TABLE
    is_timed: bool = True
    has_ended: bool = False
    clock: Callable[[], float] = field(default=time.monotonic)

    def handle(self, text: str) -> None:
        """Run a dot command or the statements in `text`; what fails is printed, not raised."""
        try:
            if text.lstrip().startswith("."):
                commands.run(self, text.strip().rstrip(";"))
            else:
                self.run_all(splitting.split(text).all())
        except KeyboardInterrupt:
            self.complain("cancelled")
        except CarawayError as error:
            self.complain(f"error: {explanations.explain(error)}")

    def run_all(self, script: Iterable[str]) -> None:
        """Run statements in order; the first that fails stops the rest."""
        for statement in script:
            if statement.lower() in ("quit", "exit"):
                self.has_ended = True
                return
            self.query(statement, PRESENTATIONS[self.format])

    def query(self, statement: str, presentation: Presentation) -> None:
        """Run one statement; leaving early closes the connection, which cancels it."""
        started_at = self.clock()
        view = presentation.view()
        last = b"\n"
        with closing(self.client.sql_chunks(statement, None, presentation.asked)) as chunks:
            for part in view.show(chunks):
                self.out.write(part)
                self.out.flush()
                last = part[-1:] or last
        elapsed = f", {self.clock() - started_at:.3f} s" if self.is_timed else ""
        rows = "1 row" if view.rows == 1 else f"{view.rows} rows"
        line_end = "" if last == b"\n" else "\n"
        self.say(f"{line_end}({rows}{elapsed})")

    def say(self, text: str) -> None:
        """Print a line."""
        self.out.write(f"{text}\n".encode())
        self.out.flush()

    def complain(self, text: str) -> None:
        """Print a line where errors go."""
        print(text, file=self.err, flush=True)


def open_shell(client: Client, format: Format, history: Path) -> int:
    """Talk until .quit or Ctrl-D; the exit code.

    Raises:
        UnreachableError, RefusedError: there is no runtime at the endpoint.
    """
    shell = Shell(client, sys.stdout.buffer, sys.stderr, format)
    is_ready, _ = client.readiness()
    names = NamesOfServer(client, time.monotonic)
    completer = ShellCompleter(names, dict(commands.ARGUMENTS))
    session = prompt.session(completer, open_history(history))
    shell.say(GREETING.format(endpoint=client.endpoint))
    if not is_ready:
        shell.complain(NOT_READY)
    loop(shell, session)
    return 0


def loop(shell: Shell, session: "PromptSession[str]") -> None:
    """Read and run until the end; Ctrl-C at the prompt drops what was typed."""
    while not shell.has_ended:
        try:
            text = session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        shell.handle(text)
