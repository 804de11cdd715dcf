"""A program that dies with the process that started it: `tied.py PARENT_PID PROGRAM ARGS...`.

It runs as a script, on the standard library alone: between fork and exec, threads of the parent
would make it unsafe to run Python.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def tie_to_parent() -> None:
    """Have the kernel end this process, without a word, when its parent ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def tied(program: Sequence[str]) -> list[str]:
    """The command line that runs the program tied to this process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *program]


def main(parent: int, program: list[str]) -> None:
    tie_to_parent()
    if os.getppid() != parent:
        sys.exit("the process that started this program has ended")
    os.execv(program[0], program)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
