from io import StringIO

from caraway.terminal import terminals

TEXT = "red \x1b[31m\x9b2J\x07\ttwo\nlines"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_text_does_not_command_the_terminal() -> None:
    assert terminals.shown(TEXT, StringIO()) == TEXT
    assert terminals.shown(TEXT, Terminal()) == "red [31m2J\ttwo\nlines"


def test_one_line_has_no_line_ends_and_no_commands() -> None:
    assert terminals.one_line(TEXT) == "red [31m2J two lines"
