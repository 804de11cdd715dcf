"""Runs `caraway store` as a child process that can be killed and restarted."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from caraway_core.tables import ResultPlace, StoreSpec

TOKEN = "tok-en"
_STOP_S = 60


@dataclass(slots=True)
class RemoteStore:
    """A store over the folder `data`; its address is stable across restarts."""

    folder: Path
    flags: tuple[str, ...] = ()
    address: str = "127.0.0.1:0"
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "store.log"

    def start(self) -> None:
        """Start it, and return when it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        token = self.folder / "token"
        token.write_text(TOKEN + "\n")
        reader, writer = os.pipe()
        command = [
            sys.executable, "-m", "caraway", "store", "--dir", str(self.data), "--listen",
            self.address, "--token-file", str(token), "--ready-fd", str(writer), *self.flags,
        ]  # fmt: skip
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                command, pass_fds=(writer,), stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )
        os.close(writer)
        with os.fdopen(reader) as pipe:
            line = pipe.readline()
        assert line, f"the store did not come up:\n{self.log.read_text()}"
        self.address = json.loads(line)["store"]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(_STOP_S)

    def terminate(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(_STOP_S)

    def place(self, prefix: str = "jobs", token: str = TOKEN) -> ResultPlace:
        spec = StoreSpec("caraway", self.address, "results", {"token": token})
        return ResultPlace("remote", prefix, spec)


@contextlib.contextmanager
def remote_store(folder: Path, *flags: str) -> Iterator[RemoteStore]:
    store = RemoteStore(folder, flags)
    store.start()
    try:
        yield store
    finally:
        if store.process is not None and store.process.poll() is None:
            store.terminate()
