"""`caraway version`."""

import platform


def version() -> None:
    """Print the version of Caraway and of Python."""
    # Reading package metadata takes longer than the rest of the start-up.
    from importlib import metadata

    print(f"caraway {metadata.version('caraway')} (Python {platform.python_version()})")
