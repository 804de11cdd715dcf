"""The interactive SQL shell. Only here is prompt_toolkit known; questions go through Client."""

from caraway.shell.history import history_path
from caraway.shell.session import open_shell

__all__ = ["history_path", "open_shell"]
