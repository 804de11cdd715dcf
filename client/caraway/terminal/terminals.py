"""Shows texts of other people on a terminal."""

from typing import TextIO

_COMMANDS = dict.fromkeys({*range(32), *range(127, 160)} - {9, 10}, None)


def shown(text: str, stream: TextIO) -> str:
    """Return a text without what would command the terminal that it is for."""
    return without_commands(text) if stream.isatty() else text


def without_commands(text: str) -> str:
    """Return a text without control characters other than tabs and line ends."""
    return text.translate(_COMMANDS)


def one_line(text: str) -> str:
    """Return a text as one line without control characters."""
    return " ".join(without_commands(text).split("\n")).replace("\t", " ")
