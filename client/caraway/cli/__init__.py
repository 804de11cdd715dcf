"""The commands: they read flags, call one function and print; nothing else lives here.

Whatever takes long to import (httpx, prompt_toolkit, rich tables) is imported inside the command
that needs it, so that `caraway run` and `caraway --help` start at once.
"""

from caraway.cli.app import main

__all__ = ["main"]
