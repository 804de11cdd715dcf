"""Starts the fork server. Imports little, because it starts before the rest of the runtime."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

from caraway_core.settings import ENGINE_VARIABLES

_FORK_SERVER = "caraway_executor.engines.fork_server"


class ForkServer:
    """A process that imports what engines need, and forks them on request.

    A server that `is_shared` is used by several runtimes, one after another.
    """

    def __init__(self, *, is_shared: bool = False) -> None:
        self.is_shared = is_shared
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setblocking(False)
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", _FORK_SERVER, str(descriptor)],
                pass_fds=(descriptor,),
                env={**ENGINE_VARIABLES, **os.environ},
                stdin=subprocess.DEVNULL,
            )

    def close(self) -> None:
        """End it, together with every engine process that it forked."""
        self.control.close()
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
