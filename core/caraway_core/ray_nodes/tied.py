"""Programs that end with the process that started them: `tied.py HOW PARENT_PID PROGRAM ARGS...`.

It runs as a script, on the standard library alone: between fork and exec, threads of the parent
would make it unsafe to run Python.
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
    """Have the kernel send the signal to this process when its parent ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def tied(program: Sequence[str]) -> list[str]:
    """The command line that runs the program so that it is killed when this process ends."""
    return _wrapped("tied", program)


def guarded(program: Sequence[str]) -> list[str]:
    """The same for a program with children: its whole process group is killed with it.

    It must be started as the leader of a group. Ray's agents otherwise outlive their raylet, if
    it is killed before they have found out who their parent is.
    """
    return _wrapped("guarded", program)


def _wrapped(how: str, program: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", __file__, how, str(os.getpid()), *program]


def main(how: str, parent: int, program: list[str]) -> None:
    tie_to_parent(_ORPHANED if how == "guarded" else signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that started this program has ended")
    if how == "guarded":
        _guard(program)
    os.execv(program[0], program)


def _guard(program: list[str]) -> None:
    """Run the program as a child, until it ends or this process is orphaned."""
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
