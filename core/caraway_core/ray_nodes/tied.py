"""Runs a program that ends with its parent: `tied.py HOW PARENT_PID PROGRAM ARGS...`.

It is a script that needs only the standard library. Running Python between fork and exec is not
safe when the parent has threads.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_ORPHANED = signal.SIGHUP
_AWAITED = (_ORPHANED, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


def tie_to_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Make the kernel send the signal to this process when its parent ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def tied(program: Sequence[str]) -> list[str]:
    """Return a command line for the program that is killed when this process ends."""
    return _wrapped("tied", program)


def guarded(program: Sequence[str]) -> list[str]:
    """Return a command line for a program that is killed with its whole process group.

    It must be started as the leader of a group. Otherwise Ray's agents outlive a raylet that is
    killed before they have determined their parent.
    """
    return _wrapped("guarded", program)


def _wrapped(how: str, program: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", __file__, how, str(os.getpid()), *program]


def main(how: str, parent: int, program: list[str]) -> None:
    """Run a program that ends with its parent; `how` is `guarded` or `tied`."""
    tie_to_parent(_ORPHANED if how == "guarded" else signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that started this program has ended")
    if how == "guarded":
        _guard(program)
    os.execv(program[0], program)


def _guard(program: list[str]) -> None:
    """Run the program as a child, until it ends or this process loses its parent."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
        main("tied", guard, program)
    while True:
        match signal.sigwait(_AWAITED):
            case signal.SIGCHLD:
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    os._exit(_code(status))
            case signal.SIGHUP:
                os.killpg(0, signal.SIGKILL)
            case number:
                os.kill(child, number)


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
