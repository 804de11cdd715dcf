"""Records itself in a file and becomes a program: `launch.py FILE WORD PROGRAM ARGS...`.

It is a script that needs only the standard library. The file has the process id and the word, from
the first moment of the program on, so that it is found again however its parent ends.
"""

import os
import sys


def main(file: str, word: str, program: list[str]) -> None:
    """Write the process id to a file, and become the program."""
    os.setsid()
    os.chdir(os.path.dirname(file))
    with open(f"{file}.new", "w") as draft:
        draft.write(f"{os.getpid()} {word}")
    os.rename(f"{file}.new", file)
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
