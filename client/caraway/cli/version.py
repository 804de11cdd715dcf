"""`caraway version`: print version numbers."""

import platform


def version() -> None:
    """Print the version of Caraway and of Python."""
    # Importing the metadata reader takes longer than the rest of the start-up.
    from importlib import metadata

    print(f"caraway {metadata.version('caraway')} (Python {platform.python_version()})")
