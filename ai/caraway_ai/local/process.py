"""Starts the process of a local model, and sees it end."""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path

from caraway_core.concurrency import tasks
from caraway_core.errors import ModelError
from caraway_core.ray_nodes import tied

_LOAD_S = 600.0
_STOP_S = 5.0
_LAST_LINES = 20
_LONGEST_LINE = 64 * 1024
_SERVING = "caraway_ai.local.serving"


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """The settings of a model process."""

    file: str
    context_length: int
    parallel: int
    threads: int
    gpu_layers: int
    memory_bytes: int | None = None
    chat_template: str = ""
    gpus: tuple[int, ...] | None = None


class LocalProcess:
    """A process that serves one model on a socket which only this user can reach."""

    def __init__(self, model: str, options: LocalOptions) -> None:
        self.key = secrets.token_urlsafe(24)
        self._model = model
        self._options = options
        self._folder = Path(tempfile.mkdtemp(prefix="caraway-model-"))
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._process: asyncio.subprocess.Process | None = None
        self._tasks = tasks.Tasks()

    @property
    def socket(self) -> str:
        # Its name shows the server that it is not a host name.
        return str(self._folder / "model.sock")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def ends(self, within_s: float) -> bool:
        """Return whether the process has ended, or does so within this time.

        A lost connection is seen before the end of the process that lost it.
        """
        if self._process is None:
            return True
        try:
            async with asyncio.timeout(within_s):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    async def start(self) -> None:
        """Start the process, and wait until the model is loaded.

        Raises:
            ModelError: it cannot be loaded.
        """
        reader, writer = os.pipe()
        options = {**asdict(self._options), "socket": self.socket, "key": self.key,
                   "ready_fd": writer}  # fmt: skip
        environment = dict(os.environ)
        if self._options.gpus is not None:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, self._options.gpus))
        command = [sys.executable, "-m", _SERVING, json.dumps(options)]
        try:
            self._process = await asyncio.create_subprocess_exec(
                *tied.tied(command), pass_fds=(writer,), stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
                start_new_session=True, env=environment,
            )  # fmt: skip
        except BaseException:
            os.close(reader)
            await self.aclose()
            raise
        finally:
            os.close(writer)
        log = self._tasks.spawn(self._read_lines(self._process), "log of a local model")
        try:
            async with asyncio.timeout(_LOAD_S):
                is_loaded = await _read_ready(reader)
        except TimeoutError:
            await self.aclose()
            raise ModelError(
                f"model '{self._model}': it was not loaded within {_LOAD_S:g} s"
            ) from None
        except BaseException:
            await self.aclose()
            raise
        if not is_loaded:
            code = await self._process.wait()
            # The last lines say why; a child of the process may keep the pipe open.
            await asyncio.wait({log}, timeout=_STOP_S)
            await self.aclose()
            raise ModelError(f"model '{self._model}': {self._cause(code)}", "invalid")

    async def aclose(self) -> None:
        """End the process."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(_STOP_S):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        await self._tasks.aclose()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _read_lines(self, process: asyncio.subprocess.Process) -> None:
        # It is read to the end, or the process would wait for room in the pipe.
        assert process.stderr is not None
        rest = b""
        while part := await process.stderr.read(4096):
            *lines, rest = (rest + part).split(b"\n")
            self._lines += [line.decode("utf-8", "replace") for line in lines]
            # A line without an end may be of any length.
            rest = rest[-_LONGEST_LINE:]
        if rest:
            self._lines.append(rest.decode("utf-8", "replace"))

    def _cause(self, code: int) -> str:
        said = [line for line in self._lines if "error" in line.lower() or "Error" in line]
        words = said[-1][:300] if said else f"its process ended with the code {code}"
        if any("No module named 'xllamacpp'" in line for line in self._lines):
            words = (
                "it needs the package 'xllamacpp'; install it with: pip install "
                "'caraway[local-models]'"
            )
        return f"the file '{self._options.file}' cannot be loaded: {words}"


async def _read_ready(reader: int) -> bool:
    """Return whether the process wrote its line before it closed the pipe."""
    with os.fdopen(reader, "rb") as pipe:
        stream = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), pipe
        )
        try:
            return bool(await stream.readline())
        finally:
            transport.close()
