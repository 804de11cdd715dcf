"""Options that a variable of the environment may set, too."""

from typing import Any

import typer


# Any: typer's own type of an option is not public.
def setting(flag: str, variable: str, help_: str, **more: Any) -> object:
    """Return an option; what follows `--flag` in its first argument describes the value."""
    name, _, value = flag.partition(" ")
    return typer.Option(name, envvar=variable, metavar=value or None, help=help_, **more)
