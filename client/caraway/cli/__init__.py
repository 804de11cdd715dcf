"""The subcommands. Each parses its options, calls one function and prints the result.

Slow imports (httpx, prompt_toolkit, rich) happen inside the command that needs them, so that
`caraway run` and `caraway --help` start fast.
"""

from caraway.cli.app import main

__all__ = ["main"]
