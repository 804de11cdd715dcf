"""The interactive SQL shell. The only package that imports prompt_toolkit; requests use Client."""

from caraway.shell.history import history_path
from caraway.shell.session import open_shell

__all__ = ["history_path", "open_shell"]
