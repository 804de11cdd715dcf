"""`python -m caraway_executor.engines.fork_server FD`: forks engine processes on request.

It has imported what an engine needs and has one thread, so a fork takes milliseconds and shares its
memory. Each message on its control socket carries one end of a channel, shared memory for rows, and
the options of an engine. It forks the engine and replies with its process id. It ends when the
socket is closed.
"""

import array
import os
import pickle
import select
import signal
import socket
import sys

from caraway_executor.engines import child
from caraway_executor.engines.messages import EngineOptions, Exited, Forked, ForkRequest

_MOST_BYTES = 64 * 1024


def serve(control: socket.socket) -> int:
    """Fork engine processes until the other end of the socket is closed; end them all then."""
    engines: set[int] = set()
    try:
        _serve(control, engines)
    except ConnectionError:
        # It was closed before what was sent there was read, as when the serving process is killed.
        pass
    for pid in engines:
        os.kill(pid, signal.SIGKILL)
    return 0


def _serve(control: socket.socket, engines: set[int]) -> None:
    woken = _wake_on_exit()
    while True:
        readable, _, _ = select.select((control.fileno(), woken), (), ())
        if woken in readable:
            os.read(woken, _MOST_BYTES)
            _reap(control, engines)
        if control.fileno() not in readable:
            continue
        request, descriptors = _receive(control)
        if not request:
            return
        asked: ForkRequest = pickle.loads(request)  # noqa: S301 -- from its parent process
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            _become(asked.options, socket.socket(fileno=descriptors[0]), *descriptors[1:2])
        for descriptor in descriptors:
            os.close(descriptor)
        engines.add(pid)
        control.sendall(_framed(Forked(asked.number, pid)))


def _wake_on_exit() -> int:
    """Return a descriptor that becomes readable when a child has ended."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return woken


def _become(options: EngineOptions, channel: socket.socket, memory: int | None = None) -> None:
    """Run an engine in the child, which must never return to its parent's loop."""
    code = 1
    try:
        code = child.run(options, channel, memory)
    except BaseException:  # noqa: BLE001 -- the child must not return to the loop
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _reap(control: socket.socket, engines: set[int]) -> None:
    while engines:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        engines.discard(pid)
        control.sendall(_framed(Exited(pid, status)))


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    descriptors = array.array("i")
    request, ancillary, _, _ = control.recvmsg(
        _MOST_BYTES, socket.CMSG_LEN(4 * descriptors.itemsize)
    )
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return request, list(descriptors)


def _framed(message: Forked | Exited) -> bytes:
    return pickle.dumps(message)


if __name__ == "__main__":
    # Signals to the process group are for the serving process, which ends its engines itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child.prepare()
    sys.exit(serve(socket.socket(fileno=int(sys.argv[1]))))
