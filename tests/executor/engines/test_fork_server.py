"""The fork server ends quietly with the process that it serves."""

import pickle
import select
import socket
import subprocess
import sys

from caraway_engine.execution.settings import EngineSettings
from caraway_executor.engines.messages import EngineOptions, Forked, ForkRequest

OPTIONS = EngineOptions(EngineSettings(1, 64 * 1024 * 1024), None, "apart")


def test_a_socket_closed_before_its_messages_are_read_ends_it_quietly() -> None:
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel, engine_end = socket.socketpair()
    with theirs, engine_end, channel:
        server = subprocess.Popen(
            [sys.executable, "-m", "caraway_executor.engines.fork_server", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        socket.send_fds(control, [pickle.dumps(ForkRequest(0, OPTIONS))], [engine_end.fileno()])
        first = pickle.loads(control.recv(64 * 1024))
        assert isinstance(first, Forked)
        socket.send_fds(control, [pickle.dumps(ForkRequest(1, OPTIONS))], [engine_end.fileno()])
    select.select((control,), (), ())  # The second answer is there, and nobody reads it.
    control.close()
    _, said = server.communicate(timeout=60)
    assert (server.returncode, said) == (0, b"")
